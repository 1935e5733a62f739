"""Tears the write of a metadata block of XFS between its sectors.

The first sector has the LSN of the last transaction that changed the block. A directory of 60 files
is synced, and the disk copied; a mount of another copy recovers it, and so writes the block whose
write is torn. Exits with 1 where the kernel refuses the torn disk.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from loop_disk import SECTOR_BYTES, copy, folder, mounted_copy, new_filesystem, run, verdict

BLOCK_BYTES = 4096
FILES = {f"file-{number:04}" for number in range(60)}


def directory_sector(image: Path, inode: int) -> int:
    """Return where the one block of a directory begins."""
    words = ("-c", f"inode {inode}", "-c", "dblock 0", "-c", "daddr")
    told = run("xfs_db", "-r", *words, image).stdout
    found = re.search(r"current daddr is (\d+)", told)
    assert found, told
    return int(found[1])


def read_block(image: Path, sector: int) -> bytes:
    """Return the block that begins there."""
    with image.open("rb") as file:
        return os.pread(file.fileno(), BLOCK_BYTES, sector * SECTOR_BYTES)


def tear(cut: Path, sector: int, head: bytes, rest: bytes) -> Path:
    """Return a copy whose block has the first sector of `head` and the others of `rest`."""
    torn = copy(cut, "torn")
    with torn.open("r+b") as file:
        os.pwrite(file.fileno(), head[:SECTOR_BYTES] + rest[SECTOR_BYTES:], sector * SECTOR_BYTES)
    return torn


def main() -> None:
    """Tear the block in two ways, and tell what mount and xfs_repair say."""
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "xfs") as (_, at):
            directory = at / "synced"
            directory.mkdir()
            for name in FILES:
                (directory / name).touch()
            inode = directory.stat().st_ino
            descriptor = os.open(directory, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
            cut = copy(image, "cut")
        recovered = copy(cut, "recovered")
        with mounted_copy(recovered) as at_copy:
            assert at_copy
            assert set(os.listdir(at_copy / "synced")) == FILES
        sector = directory_sector(recovered, inode)
        old, new = read_block(cut, sector), read_block(recovered, sector)
        with mounted_copy(tear(cut, sector, old, new)) as at_copy:
            assert at_copy
            assert set(os.listdir(at_copy / "synced")) == FILES
        print("its first sector is old: the mount is taken, and nothing is missing")
        torn = tear(cut, sector, new, old)
        with mounted_copy(torn) as at_copy:
            is_refused = at_copy is None
        print(f"its first sector is new: the mount is {'refused' if is_refused else 'taken'}")
        if is_refused:
            print(f"xfs_repair exits with {run('xfs_repair', torn, may_fail=True).returncode}")
            repair = run("xfs_repair", "-L", torn, may_fail=True).returncode
            with mounted_copy(torn) as at_copy:
                assert at_copy
                is_there = (at_copy / "synced").exists()
            print(f"xfs_repair -L exits with {repair}; then the synced directory is "
                  f"{'there' if is_there else 'gone'}")  # fmt: skip
    verdict(
        is_refused, f"XFS with a torn block: the mount is {'refused' if is_refused else 'taken'}"
    )


main()
