"""Loses one block of 4 KiB of a NILFS2, as a power cut may: that of the segment usage file, in the
first part of a log whose second part is in the next segment.

The disk is copied while it is mounted, and what was written behind that log is taken away, as if it
had not been sent yet. Then a file is removed and another written. Exits with 1 where a file that
was synced long before has other bytes after that.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from loop_disk import copy, folder, mounted_copy, need_filesystem, new_filesystem, verdict
from nilfs2_disk import BLOCK_BYTES, SEGMENT_BLOCKS, SUFILE, end_log, put, read_disk, read_parts


def lose(cut: Path) -> None:
    """Put zeros into the block, and into all that was written behind its log."""
    disk = read_disk(cut)
    for first, second in reversed(list(pairwise(read_parts(disk)))):
        lost = next((place for *of, place in first.data() if of == [SUFILE, 0]), None)
        # Where the first part begins its segment, the search for logs ends.
        is_inside = first.block % SEGMENT_BLOCKS
        if is_inside and lost and second.ends and not first.ends:
            end_log(cut, disk, second.end)
            put(cut, lost, bytes(BLOCK_BYTES))
            print(f"block {lost} is lost, of a log that ends in block {second.block}")
            return
    raise AssertionError("no log has its segment usage file in its first part")


def write(path: Path, contents: bytes) -> str:
    """Write and sync a file; return what came of it."""
    try:
        with path.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return "success"


def read(path: Path) -> bytes | None:
    """Return what a file holds, or None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def free_blocks(at: Path) -> int:
    """Return the number of free blocks as statvfs(2) has it, which knows no sign."""
    return os.statvfs(at).f_bfree % 2**64


def main() -> None:
    """Lose the block, and tell what the next mounts find."""
    need_filesystem("nilfs2")
    live = bytes(range(1, 256)) * 90
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "nilfs2", "-B", str(SEGMENT_BLOCKS)) as (_, at):
            write(at / "before", bytes(2 * SEGMENT_BLOCKS * BLOCK_BYTES))
            write(at / "live", live)
            for number in range(60):
                write(at / "other", bytes([number]) * BLOCK_BYTES * (1 + number % 5))
            cut = copy(image, "cut")
        lose(cut)
        with mounted_copy(cut) as at_copy:
            assert at_copy
            print(f"the mount is taken, and {free_blocks(at_copy)} blocks are free")
            print(f"a new file: {write(at_copy / 'new', b'x')}")
            assert read(at_copy / "live") == live
            (at_copy / "other").unlink()
            os.sync()
            print(f"a file is removed, and {free_blocks(at_copy)} blocks are free")
            print(f"a new file: {write(at_copy / 'new', b'x' * BLOCK_BYTES * 1000)}")
        with mounted_copy(cut) as at_copy:
            found = read(at_copy / "live") if at_copy else None
    words = "has its bytes" if found == live else "has others" if found else "cannot be read"
    verdict(found != live, f"NILFS2 without a block of a log: a file synced before {words}")


main()
