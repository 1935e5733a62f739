"""Tears the write of a commit block of ext4's journal between its sectors, once the log has
wrapped.

The torn block has the first sector of what a sync wrote, and of the others what was there before.
Exits with 1 where the kernel refuses the torn disk.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

from loop_disk import SECTOR_BYTES, copy, folder, mounted_copy, new_filesystem, run, verdict

BLOCK_BYTES = 4096
# Of jbd2's headers, which are big-endian: magic, block type, transaction (include/linux/jbd2.h).
HEADER = struct.Struct(">III")
MAGIC, COMMIT_BLOCK = 0xC03B3998, 2
# A journal of 4 MiB; a sync of a new file takes four blocks of it or more.
JOURNAL_BLOCKS, SYNCS = 1024, 600
# Draws of a block that held other bytes in its last seven sectors: those of a commit block are
# zeros, and many commit blocks are written where one was.
MOST_SYNCS = 200


def journal_blocks(device: str) -> list[int]:
    """Return where the journal's blocks are: its inode is 8."""
    told = run("debugfs", "-R", "blocks <8>", device).stdout
    blocks = [int(number) for number in re.findall(r"\d+", told)]
    assert len(blocks) == JOURNAL_BLOCKS, told
    return blocks


def read_journal(image: Path, blocks: list[int]) -> dict[int, bytes]:
    """Return the contents of the journal's blocks."""
    with image.open("rb") as file:
        return {each: os.pread(file.fileno(), BLOCK_BYTES, each * BLOCK_BYTES) for each in blocks}


def newest_commit(journal: dict[int, bytes]) -> int:
    """Return where the commit block of the last transaction is."""
    headers = {number: HEADER.unpack_from(content) for number, content in journal.items()}
    commits = {
        number: transaction
        for number, (magic, kind, transaction) in headers.items()
        if (magic, kind) == (MAGIC, COMMIT_BLOCK)
    }
    return max(commits, key=lambda number: commits[number])


def write_and_sync(path: Path) -> None:
    """Make a file that has its own name in it."""
    with path.open("wb", buffering=0) as file:
        file.write(path.name.encode())
        os.fsync(file.fileno())


def files_of(at: Path) -> set[str]:
    """Return the names of the files that are there, whole."""
    names = {path.name for path in at.glob("synced-*")}
    assert all((at / name).read_text() == name for name in names)
    return names


def main() -> None:
    """Tear the commit block of the last sync, and tell what mount and e2fsck -p say."""
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "ext4", "-b", "4096", "-J", "size=4") as (device, at):
            for number in range(SYNCS):
                write_and_sync(at / f"synced-{number}")
            blocks = journal_blocks(device)
            for number in range(SYNCS, SYNCS + MOST_SYNCS):
                before = read_journal(image, blocks)
                write_and_sync(at / f"synced-{number}")
                after = read_journal(image, blocks)
                place = newest_commit(after)
                if before[place][SECTOR_BYTES:] != after[place][SECTOR_BYTES:]:
                    break
            whole = copy(image, "whole")
        assert before[place][SECTOR_BYTES:] != after[place][SECTOR_BYTES:]
        synced = {f"synced-{each}" for each in range(number)}
        last = f"synced-{number}"
        torn = copy(whole, "torn")
        with torn.open("r+b") as file:
            os.pwrite(file.fileno(), before[place][SECTOR_BYTES:],
                      place * BLOCK_BYTES + SECTOR_BYTES)  # fmt: skip
        with mounted_copy(whole) as at_copy:
            assert at_copy
            assert files_of(at_copy) == synced | {last}
        with mounted_copy(copy(torn, "as-it-is")) as at_copy:
            is_refused = at_copy is None
            # A kernel that mounts it has the transaction of the torn block too.
            assert at_copy is None or files_of(at_copy) == synced | {last}
        print(f"the mount is {'refused' if is_refused else 'taken, and nothing is missing'}")
        repair = run("e2fsck", "-fp", torn, may_fail=True).returncode
        with mounted_copy(torn) as at_copy:
            assert at_copy
            assert files_of(at_copy) == synced
        print(f"e2fsck -p exits with {repair}; then all {number} files are there whose sync had "
              "returned before")  # fmt: skip
    verdict(is_refused, "ext4 with a torn commit block: the mount is "
            f"{'refused' if is_refused else 'taken'}")  # fmt: skip


main()
