"""The log of a NILFS2 as it lies on a disk of small segments, for the scripts beside this file
(include/uapi/linux/nilfs2_ondisk.h).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

BLOCK_BYTES = 4096
SEGMENT_BLOCKS = 16
_MAGIC = 0x1EAFFA11
# Inodes of the DAT, the checkpoint file and the segment usage file; the flag of a log's last part.
_DAT, CPFILE, SUFILE = 3, 4, 5
_ENDS = 2


class Part:
    """A log, or the part of it that is in one segment (struct nilfs_segment_summary)."""

    def __init__(self, disk: bytes, block: int) -> None:
        """Read the summary that begins with a block."""
        at = block * BLOCK_BYTES
        self._disk, self.block = disk, block
        magic, self._bytes, flags = struct.unpack_from("<IHH", disk, at + 8)
        self.blocks, self._files, self._summary_bytes = struct.unpack_from("<III", disk, at + 40)
        self.is_there = magic == _MAGIC and self.blocks > 0
        self.ends = bool(flags & _ENDS)
        self.end = block + self.blocks

    def data(self) -> Iterator[tuple[int, int, int]]:
        """Yield of each block of data its inode, its number in that file and its place."""
        at = self.block * BLOCK_BYTES + self._bytes
        place = self.block - -self._summary_bytes // BLOCK_BYTES
        for _ in range(self._files):
            inode, _, blocks, data = struct.unpack_from("<QQII", self._disk, at)
            at += 24
            data_bytes, node_bytes = (8, 16) if inode == _DAT else (16, 8)
            for number in range(data):
                # Beside the DAT's, a block has its number in the DAT before that in its file.
                [in_file] = struct.unpack_from("<Q", self._disk, at + data_bytes - 8)
                yield inode, in_file, place + number
                at += data_bytes
            at += (blocks - data) * node_bytes
            place += blocks


def read_disk(path: Path) -> bytes:
    """Return the beginning of a disk: its first 1,000 segments."""
    with path.open("rb") as file:
        return file.read(1000 * SEGMENT_BLOCKS * BLOCK_BYTES)


def read_parts(disk: bytes) -> list[Part]:
    """Return all parts of logs, as they follow one another in a new filesystem."""
    parts = list[Part]()
    for segment in range(len(disk) // BLOCK_BYTES // SEGMENT_BLOCKS):
        block = segment * SEGMENT_BLOCKS or 1
        while block < (segment + 1) * SEGMENT_BLOCKS:
            part = Part(disk, block)
            if not part.is_there:
                break
            parts.append(part)
            block = part.end
    return parts


def put(path: Path, block: int, content: bytes) -> None:
    """Write to a disk from a block on."""
    with path.open("r+b") as file:
        os.pwrite(file.fileno(), content, block * BLOCK_BYTES)


def end_log(path: Path, disk: bytes, block: int) -> None:
    """Put zeros into all that was written from a block on, as if it had not been sent."""
    put(path, block, bytes(len(disk) - block * BLOCK_BYTES))
