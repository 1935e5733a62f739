"""Unpacks an image in Android's sparse format (libsparse, sparse_format.h), in which the agent
hands out a disk, into a file with holes and the disk's size.
"""

from __future__ import annotations

import struct
from pathlib import Path

from jojlab.guest.errors import GuestError

_HEADER = struct.Struct("<IHHHHIIII")
_CHUNK = struct.Struct("<HHII")
_MAGIC = 0xED26FF3A
_RAW, _DO_NOT_CARE = 0xCAC1, 0xCAC3
_MOST_BYTES = 1 << 42


def unpack(image: bytes, out: Path) -> None:
    """Write the disk's contents to `out`; GuestError when the image is damaged."""
    if len(image) < _HEADER.size:
        raise GuestError("the disk image has no header")
    magic, major, _, head, chunk_head, block_bytes, blocks, chunks, _ = _HEADER.unpack_from(image)
    if (magic, major, head, chunk_head) != (_MAGIC, 1, _HEADER.size, _CHUNK.size):
        raise GuestError("the disk image is not in Android's sparse format, version 1")
    if blocks * block_bytes > _MOST_BYTES:
        raise GuestError(f"the disk image claims {blocks} blocks of {block_bytes} bytes")
    at, block = head, 0
    with out.open("wb") as file:
        file.truncate(blocks * block_bytes)
        for number in range(chunks):
            if at + chunk_head > len(image):
                raise GuestError(f"the disk image ends in the head of its chunk {number}")
            kind, _, count, total = _CHUNK.unpack_from(image, at)
            content = count * block_bytes if kind == _RAW else 0
            if kind not in (_RAW, _DO_NOT_CARE) or total != chunk_head + content:
                raise GuestError(f"the disk image's chunk {number} is damaged")
            if block + count > blocks or at + total > len(image):
                raise GuestError(f"the disk image's chunk {number} reaches beyond its end")
            if content:
                file.seek(block * block_bytes)
                file.write(memoryview(image)[at + chunk_head : at + total])
            at, block = at + total, block + count
    if block != blocks or at != len(image):
        raise GuestError("the disk image's chunks are not what its header says")
