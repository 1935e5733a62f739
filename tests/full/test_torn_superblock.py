"""What it costs that a power cut tore the write of a superblock between its sectors: the kernel
refuses the mount, the filesystem's own tool repairs it from a copy, and Btrfs then lacks what was
synced since its last commit (docs/power-cuts.md).

The filesystem lies on a loop device of this machine. A cut is a copy of its image after a sync that
returned; the superblock that the next mount writes gives the other half of the torn one.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.live.loop import attached, copied, mounted

SECTOR_BYTES, SLOT_BYTES = 512, 4096
CONTENT = b"x" * 9000


@dataclass(frozen=True)
class KnownState:
    """Where the 4 KiB of the superblock begin, a check that refuses, and what repairs it, with the
    exit code that says so. `has_synced`: whether what was synced after the last commit is there.
    """

    begin_bytes: int
    check: tuple[str, ...]
    repair: tuple[str, ...]
    repaired: int
    has_synced: bool


KNOWN = {
    # -p is what boots run; e2fsck(8): 1 is "errors corrected".
    "ext4": KnownState(0, ("e2fsck", "-fp"), ("e2fsck", "-fy"), 1, has_synced=True),
    # fsync writes no copy of the superblock, which has the place of its log (btrfs_sync_log() of
    # fs/btrfs/tree-log.c). The tool's 2 is "recovered" (cmds/rescue-super-recover.c).
    "btrfs": KnownState(
        65536,
        ("btrfs", "check"),
        ("btrfs", "rescue", "super-recover", "-y"),
        2,
        has_synced=False,
    ),
}


def slot(image: Path, known_state: KnownState) -> bytes:
    """The superblock and what shares its 4 KiB."""
    with image.open("rb") as file:
        file.seek(known_state.begin_bytes)
        return file.read(SLOT_BYTES)


def put(image: Path, known_state: KnownState, content: bytes) -> None:
    with image.open("r+b") as file:
        file.seek(known_state.begin_bytes)
        file.write(content)


@pytest.mark.parametrize("filesystem", KNOWN)
def test_a_torn_superblock_stops_the_mount_and_is_repaired(filesystem: str, tmp_path: Path) -> None:
    known = KNOWN[filesystem]
    with mounted(filesystem, tmp_path) as loop:
        (loop.directory / "committed").write_bytes(CONTENT)
        subprocess.run(["sync", "--file-system", loop.directory], check=True)
        with (loop.directory / "synced").open("wb", buffering=0) as file:
            file.write(CONTENT)
            os.fsync(file.fileno())
        cut = copied(tmp_path / "image", tmp_path / "cut")
    at = tmp_path / "copy-mounted"
    at.mkdir()
    recovered = copied(cut, tmp_path / "recovered")
    with attached(recovered, at) as is_mounted:
        assert is_mounted
    old, new = slot(cut, known), slot(recovered, known)
    sectors = range(0, SLOT_BYTES, SECTOR_BYTES)
    changed = [
        begin
        for begin in sectors
        if old[begin : begin + SECTOR_BYTES] != new[begin : begin + SECTOR_BYTES]
    ]
    half = changed[1]  # one sector alone cannot be torn from another
    image = copied(cut, tmp_path / "whole")
    with attached(image, at) as is_mounted:
        assert is_mounted
        assert (at / "synced").read_bytes() == CONTENT
    for content in (new[:half] + old[half:], old[:half] + new[half:]):
        put(copied(cut, image), known, content)
        with attached(image, at) as is_mounted:
            assert not is_mounted
        checked = subprocess.run([*known.check, image], capture_output=True, check=False)
        assert checked.returncode not in (0, known.repaired), checked
        repair = subprocess.run([*known.repair, image], capture_output=True, check=False)
        assert repair.returncode == known.repaired, repair
        with attached(image, at) as is_mounted:
            assert is_mounted
            assert (at / "committed").read_bytes() == CONTENT
            assert (at / "synced").exists() == known.has_synced
