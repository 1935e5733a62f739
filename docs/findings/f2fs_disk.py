"""The places on an F2FS of its checkpoints and of the node that a recovery reads first, for the
scripts beside this file (include/linux/f2fs_fs.h).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

BLOCK_BYTES = 4096
_SUPERBLOCK_AT = 1024
# Places of fields of struct f2fs_super_block, and of struct f2fs_checkpoint.
_LOG_SEGMENT_BLOCKS, _CHECKPOINT_SEGMENTS, _CHECKPOINT_BLOCK, _MAIN_BLOCK = 20, 52, 76, 92
_WARM_NODE_SEGMENT, _WARM_NODE_OFFSET = 40, 70


def checkpoint_area(image: Path) -> tuple[int, bytes]:
    """Return where both checkpoints of a disk are, and their bytes."""
    with image.open("rb") as file:
        superblock = os.pread(file.fileno(), BLOCK_BYTES, _SUPERBLOCK_AT)
        segments = _number(superblock, _CHECKPOINT_SEGMENTS)
        blocks = segments << _number(superblock, _LOG_SEGMENT_BLOCKS)
        at = _number(superblock, _CHECKPOINT_BLOCK) * BLOCK_BYTES
        return at, os.pread(file.fileno(), blocks * BLOCK_BYTES, at)


def first_recovered_node(image: Path) -> int:
    """Return where the node is that recovery reads first: where the next node of a file goes after
    the newer checkpoint.
    """
    _, area = checkpoint_area(image)
    half = len(area) // 2
    newer = max(area[:half], area[half:], key=lambda pack: struct.unpack_from("<Q", pack))
    with image.open("rb") as file:
        superblock = os.pread(file.fileno(), BLOCK_BYTES, _SUPERBLOCK_AT)
    segment = _number(newer, _WARM_NODE_SEGMENT) << _number(superblock, _LOG_SEGMENT_BLOCKS)
    [in_segment] = struct.unpack_from("<H", newer, _WARM_NODE_OFFSET)
    return (_number(superblock, _MAIN_BLOCK) + segment + int(in_segment)) * BLOCK_BYTES


def _number(content: bytes, at: int) -> int:
    [number] = struct.unpack_from("<I", content, at)
    return int(number)
