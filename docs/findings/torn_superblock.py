"""Tears the write of a superblock of ext4 and of Btrfs between its sectors.

A file is synced, and the disk copied: that is a power cut which loses nothing. The superblock that
the next mount writes gives the other half of a torn one. Exits with 1 where the kernel refuses a
torn disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from loop_disk import SECTOR_BYTES, copy, folder, mounted_copy, new_filesystem, run, verdict

SLOT_BYTES = 4096
CONTENT = b"x" * 9000
# Where the 4 KiB with the superblock begin, and what repairs it.
BEGIN_BYTES = {"ext4": 0, "btrfs": 65536}
REPAIR = {"ext4": ("e2fsck", "-fy"), "btrfs": ("btrfs", "rescue", "super-recover", "-y")}


def read_slot(image: Path, begin: int) -> bytes:
    """Return the superblock and what shares its 4 KiB."""
    with image.open("rb") as file:
        return os.pread(file.fileno(), SLOT_BYTES, begin)


def write_slot(image: Path, begin: int, content: bytes) -> None:
    """Put these 4 KiB in its place."""
    with image.open("r+b") as file:
        os.pwrite(file.fileno(), content, begin)


def refused_mounts(filesystem: str) -> int:
    """Tear it in two ways, tell what mount and repair say, and return how many mounts failed."""
    begin, refusals = BEGIN_BYTES[filesystem], 0
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, filesystem) as (_, at):
            (at / "committed").write_bytes(CONTENT)
            run("sync", "--file-system", at)
            with (at / "synced").open("wb", buffering=0) as file:
                file.write(CONTENT)
                os.fsync(file.fileno())
            cut = copy(image, "cut")
        recovered = copy(cut, "recovered")
        with mounted_copy(recovered) as at_copy:
            assert at_copy
            assert (at_copy / "synced").read_bytes() == CONTENT
        old, new = read_slot(cut, begin), read_slot(recovered, begin)
        different = [
            place
            for place in range(0, SLOT_BYTES, SECTOR_BYTES)
            if old[place : place + SECTOR_BYTES] != new[place : place + SECTOR_BYTES]
        ]
        half = different[1]  # one sector alone cannot be torn from another
        for words, content in (
            ("its first sectors are new", new[:half] + old[half:]),
            ("its last sectors are new", old[:half] + new[half:]),
        ):
            name = f"{filesystem}, {words}"
            torn = copy(cut, "torn")
            write_slot(torn, begin, content)
            with mounted_copy(torn) as at_copy:
                print(f"{name}: the mount is {'taken' if at_copy else 'refused'}")
                refusals += at_copy is None
            if filesystem == "ext4":
                boot = run("e2fsck", "-fp", torn, may_fail=True).returncode
                print(f"{name}: e2fsck -p exits with {boot}")
            repair = run(*REPAIR[filesystem], torn, may_fail=True).returncode
            with mounted_copy(torn) as at_copy:
                assert at_copy
                left = [each for each in ("committed", "synced") if (at_copy / each).exists()]
            print(f"{name}: {' '.join(REPAIR[filesystem])} exits with {repair}; then there is: "
                  f"{', '.join(left)}")  # fmt: skip
    return refusals


refused = {filesystem: refused_mounts(filesystem) for filesystem in BEGIN_BYTES}
told = ", ".join(f"{name} {count} of 2 times" for name, count in refused.items())
verdict(any(refused.values()), f"the mount of a torn superblock is refused: {told}")
