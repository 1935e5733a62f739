"""What it costs that a power cut tore the write of a commit block of ext4's journal between its
sectors, once the log has wrapped: `e2fsck -p`, which boots run, repairs it, and what was synced is
there; a kernel with jbd2_commit_block_csum_verify_partial() mounts it (docs/power-cuts.md).

The filesystem lies on a loop device of this machine. A cut is a copy of its image after a sync; the
torn block has the first sector of what that sync wrote, and of the others what was there before.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

from tests.live.loop import attached, copied, mounted

BLOCK_BYTES, SECTOR_BYTES = 4096, 512
# Of jbd2's headers, which are big-endian: magic, block type, transaction (include/linux/jbd2.h).
HEADER = struct.Struct(">III")
MAGIC, COMMIT_BLOCK = 0xC03B3998, 2
# A journal of 4 MiB; a sync of a new file takes four blocks of it or more.
JOURNAL_BLOCKS = 1024
SYNCS = 600
# Draws of a block that held other bytes in its last seven sectors: those of a commit block are
# zeros, and many commit blocks are written where one was.
MOST_SYNCS = 200


def journal_blocks(device: str) -> list[int]:
    """Where the journal's blocks are: its inode is 8."""
    told = subprocess.run(
        ["debugfs", "-R", "blocks <8>", device], capture_output=True, text=True, check=True
    )
    blocks = [int(number) for number in re.findall(r"\d+", told.stdout)]
    assert len(blocks) == JOURNAL_BLOCKS, told
    return blocks


def journal(image: Path, blocks: list[int]) -> dict[int, bytes]:
    """The contents of the journal's blocks."""
    with image.open("rb") as file:
        found = file.fileno()
        return {each: os.pread(found, BLOCK_BYTES, each * BLOCK_BYTES) for each in blocks}


def newest_commit(answer: dict[int, bytes]) -> int:
    """Where the commit block of the last transaction is."""
    headers = {number: HEADER.unpack_from(content) for number, content in answer.items()}
    commits = {
        number: transaction
        for number, (magic, kind, transaction) in headers.items()
        if (magic, kind) == (MAGIC, COMMIT_BLOCK)
    }
    return max(commits, key=lambda number: commits[number])


def write_and_sync(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(path.name.encode())
        os.fsync(file.fileno())


def test_a_torn_commit_block_is_repaired_and_takes_nothing_that_was_synced(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with mounted("ext4", tmp_path, "-b", "4096", "-J", "size=4") as loop:
        for number in range(SYNCS):
            write_and_sync(loop.directory / f"synced-{number}")
        blocks = journal_blocks(loop.device)
        for number in range(SYNCS, SYNCS + MOST_SYNCS):
            before = journal(image, blocks)
            write_and_sync(loop.directory / f"synced-{number}")
            after = journal(image, blocks)
            place = newest_commit(after)
            if before[place][SECTOR_BYTES:] != after[place][SECTOR_BYTES:]:
                break
        whole = copied(image, tmp_path / "whole")
    assert place != newest_commit(before)
    assert before[place][SECTOR_BYTES:] != after[place][SECTOR_BYTES:]
    torn = copied(whole, tmp_path / "torn")
    with torn.open("r+b") as file:
        file.seek(place * BLOCK_BYTES + SECTOR_BYTES)
        file.write(before[place][SECTOR_BYTES:])
    at = tmp_path / "copy-mounted"
    at.mkdir()
    synced = {f"synced-{each}" for each in range(number)}
    last = f"synced-{number}"

    def judge() -> set[str]:
        names = {path.name for path in at.glob("synced-*")}
        assert all((at / name).read_text() == name for name in names)
        return names

    with attached(whole, at) as is_mounted:
        assert is_mounted
        assert judge() == synced | {last}
    with attached(copied(torn, tmp_path / "as-it-is"), at) as is_mounted:
        # A kernel without that function refuses it.
        assert not is_mounted or judge() == synced | {last}
    # e2fsck(8): 1 is "errors corrected". It drops the transaction, whose sync had not returned.
    repair = subprocess.run(["e2fsck", "-fp", torn], capture_output=True, check=False)
    assert repair.returncode == 1, repair
    with attached(torn, at) as is_mounted:
        assert is_mounted
        assert judge() == synced
