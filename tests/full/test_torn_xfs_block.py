"""What it costs that a power cut tore the write of a metadata block of XFS between its sectors. The
first sector has the LSN of the last transaction that changed the block. Where it is the new one,
the log does not restore the block: the mount is refused, and xfs_repair must throw the log away,
and with it what was synced. Where it is the old one the log does (docs/power-cuts.md).

The filesystem lies on a loop device of this machine. A cut is a copy of its image after a sync that
returned; a mount of another copy recovers it, and so writes the block whose write is torn.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.live.loop import attached, copied, mounted

SECTOR_BYTES, BLOCK_BYTES = 512, 4096
FILES = {f"file-{number:04}" for number in range(60)}


def sector_of_directory(image: Path, inode: int) -> int:
    """Where the one block of a directory begins."""
    told = subprocess.run(
        ["xfs_db", "-r", "-c", f"inode {inode}", "-c", "dblock 0", "-c", "daddr", image],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"current daddr is (\d+)", told.stdout)
    assert found, told
    return int(found[1])


def read_block(image: Path, sector: int) -> bytes:
    with image.open("rb") as file:
        return os.pread(file.fileno(), BLOCK_BYTES, sector * SECTOR_BYTES)


def repair(image: Path, *options: str) -> int:
    return subprocess.run(
        ["xfs_repair", *options, image], capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize("has_new_head", [True, False])
def test_a_torn_block_with_a_new_head_is_not_restored(tmp_path: Path, has_new_head: bool) -> None:
    with mounted("xfs", tmp_path) as loop:
        directory = loop.directory / "synced"
        directory.mkdir()
        for name in FILES:
            (directory / name).touch()
        inode = directory.stat().st_ino
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        cut = copied(tmp_path / "image", tmp_path / "cut")
    at = tmp_path / "copy-mounted"
    at.mkdir()
    recovered = copied(cut, tmp_path / "recovered")
    with attached(recovered, at) as is_mounted:
        assert is_mounted
        assert set(os.listdir(at / "synced")) == FILES
    sector = sector_of_directory(recovered, inode)
    old, new = read_block(cut, sector), read_block(recovered, sector)
    assert old[:SECTOR_BYTES] != new[:SECTOR_BYTES]
    assert old[SECTOR_BYTES:] != new[SECTOR_BYTES:]
    head, rest = (new, old) if has_new_head else (old, new)
    with cut.open("r+b") as file:
        os.pwrite(file.fileno(), head[:SECTOR_BYTES] + rest[SECTOR_BYTES:], sector * SECTOR_BYTES)
    with attached(copied(cut, tmp_path / "torn"), at) as is_mounted:
        assert is_mounted != has_new_head
        assert not is_mounted or set(os.listdir(at / "synced")) == FILES
    if not has_new_head:
        return
    # xfs_repair(8): 2 is "the log is dirty".
    assert repair(cut) == 2
    assert repair(cut, "-L") == 0
    with attached(cut, at) as is_mounted:
        assert is_mounted
        assert not (at / "synced").exists()
