"""Cuts the power of a NILFS2 twice and loses one block of 4 KiB, one of its checkpoint file, in the
first part of a log whose second part is in the next segment.

A file is written anew and synced, again and again. The first cut takes the second part of a log;
the next mount takes the log before it, and writes one of its own over the first part. The second
cut loses a block of that log, so that there still is what the first one had left: the first block
of the checkpoint file where a later one should be. Exits with 1 where the file is then as it was
many syncs ago.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from loop_disk import copy, folder, mounted_copy, need_filesystem, new_filesystem, verdict
from nilfs2_disk import (
    BLOCK_BYTES,
    CPFILE,
    SEGMENT_BLOCKS,
    Part,
    end_log,
    put,
    read_disk,
    read_parts,
)


def write(at: Path, number: int, blocks: int) -> None:
    """Write the number over the first blocks of the file, and sync it."""
    with (at / "numbers").open("r+b") as file:
        file.write(number.to_bytes(8, "little") * (BLOCK_BYTES // 8 * blocks))
        file.flush()
        os.fsync(file.fileno())


def read(at: Path) -> list[int]:
    """Return the numbers that the file has, each once."""
    content = (at / "numbers").read_bytes()
    found = {content[place : place + 8] for place in range(0, len(content), 8)}
    return sorted(int.from_bytes(each, "little") for each in found)


def first_parts(disk: bytes) -> Iterator[tuple[Part, int]]:
    """Yield each first part of a log, the last one first, and where it has the first block of the
    checkpoint file.
    """
    for part in reversed(read_parts(disk)):
        if part.block % SEGMENT_BLOCKS and not part.ends:
            yield from ((part, place) for *of, place in part.data() if of == [CPFILE, 0])


def main() -> None:
    """Cut the power twice, and tell what each mount finds."""
    need_filesystem("nilfs2")
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "nilfs2", "-B", str(SEGMENT_BLOCKS)) as (_, at):
            (at / "numbers").touch()
            for number in range(1, 61):
                write(at, number, 3)
            cut = copy(image, "cut")
        disk = read_disk(cut)
        for first, lost in first_parts(disk):
            once = copy(cut, "once")
            end_log(once, disk, first.end)
            with mounted_copy(once) as at_copy:
                assert at_copy
                before = read(at_copy)
                # One block fewer, so that the blocks behind it move up by one.
                write(at_copy, max(before) + 1, 2)
                twice = copy(once, "twice")
            part = Part(read_disk(twice), first.block)
            if not part.ends and any(
                inode == CPFILE and in_file and place == lost
                for inode, in_file, place in part.data()
            ):
                break
        else:
            raise AssertionError("no log has the block in its first part")
        print(f"one cut, in a log from block {first.block} on: the file has {before}")
        put(twice, lost, disk[lost * BLOCK_BYTES : (lost + 1) * BLOCK_BYTES])
        print(f"a second cut, in the log that is written there, loses block {lost}")
        with mounted_copy(twice) as at_copy:
            after = read(at_copy) if at_copy else None
    print(f"the file has {after}" if after else "the mount is refused")
    is_old = after is not None and max(after) < max(before)
    words = "a file is as it was before many syncs" if is_old else "no sync is undone"
    verdict(is_old, f"NILFS2 without a block of its checkpoint file: {words}")


main()
