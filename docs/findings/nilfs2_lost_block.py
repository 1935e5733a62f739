"""Loses one block of 4 KiB of a NILFS2, as a power cut may: that of the segment usage file, in the
first part of a log whose second part is in the next segment.

The disk is copied while it is mounted, and what was written behind that log is taken away, as if it
had not been sent yet. Then a file is removed and another written. Exits with 1 where a file that
was synced long before has other bytes after that.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from pathlib import Path

from loop_disk import copy, folder, mounted, mounted_copy, run, verdict

BLOCK_BYTES = 4096
SEGMENT_BLOCKS = 16
MAGIC = 0x1EAFFA11
# Inodes of the DAT and of the segment usage file; the flag of a log's last part.
DAT, SUFILE = 3, 5
ENDS = 2


class Part:
    """A log, or the part of it that is in one segment (struct nilfs_segment_summary)."""

    def __init__(self, disk: bytes, block: int) -> None:
        """Read the summary that begins with a block."""
        at = block * BLOCK_BYTES
        self.disk, self.block = disk, block
        self.magic, self.bytes, self.flags = struct.unpack_from("<IHH", disk, at + 8)
        self.blocks, self.files, self.summary_bytes = struct.unpack_from("<III", disk, at + 40)

    def sufile_block(self) -> int | None:
        """Return where the first block of the segment usage file is, if the part has it."""
        at = self.block * BLOCK_BYTES + self.bytes
        block = self.block - -self.summary_bytes // BLOCK_BYTES
        for _ in range(self.files):
            inode, _, blocks, data = struct.unpack_from("<QQII", self.disk, at)
            if inode == SUFILE:
                _, of_file = struct.unpack_from("<QQ", self.disk, at + 24)
                return None if of_file else block
            data_bytes, node_bytes = (8, 16) if inode == DAT else (16, 8)
            at += 24 + data * data_bytes + (blocks - data) * node_bytes
            block += blocks
        return None


def read_parts(disk: bytes) -> list[Part]:
    """Return all parts of logs, as they follow one another in a new filesystem."""
    parts = list[Part]()
    for segment in range(len(disk) // BLOCK_BYTES // SEGMENT_BLOCKS):
        block = segment * SEGMENT_BLOCKS or 1
        while block < (segment + 1) * SEGMENT_BLOCKS:
            part = Part(disk, block)
            if part.magic != MAGIC or not part.blocks:
                break
            parts.append(part)
            block += part.blocks
    return parts


def lose(cut: Path) -> None:
    """Put zeros into the block, and into all that was written behind its log."""
    with cut.open("r+b") as file:
        disk = file.read(1000 * SEGMENT_BLOCKS * BLOCK_BYTES)
        parts = read_parts(disk)
        for first, second in reversed(list(pairwise(parts))):
            lost = first.sufile_block()
            # Where the first part begins its segment, the search for logs ends.
            is_inside = first.block % SEGMENT_BLOCKS
            if not (is_inside and lost and second.flags & ENDS) or first.flags & ENDS:
                continue
            end = (second.block + second.blocks) * BLOCK_BYTES
            os.pwrite(file.fileno(), bytes(len(disk) - end), end)
            os.pwrite(file.fileno(), bytes(BLOCK_BYTES), lost * BLOCK_BYTES)
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
    run("modprobe", "--quiet", "nilfs2", may_fail=True)
    if "nilfs2" not in Path("/proc/filesystems").read_text().split():
        verdict(False, "not tried, as this kernel has no NILFS2")
    live = bytes(range(1, 256)) * 90
    with folder() as work:
        image = work / "image"
        with mounted(image, "nilfs2", "-B", str(SEGMENT_BLOCKS)) as (_, at):
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
