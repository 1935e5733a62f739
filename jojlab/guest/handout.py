"""The files that a guest hands out, and images of disks without their holes."""

from __future__ import annotations

import io
import re
import struct
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import GuestError
from jojlab.guest.process import Guest

MAGIC = b"joj-tar\0"
VERSION = 1
_HEADER = struct.Struct("<8sIIQ")
HEADER_BYTES = _HEADER.size
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_FILES = 1000


@dataclass(frozen=True)
class Header:
    """The archive's CRC-32 and its length in bytes."""

    crc: int
    length_bytes: int


async def collect(guest: Guest, address: int, region_bytes: int) -> dict[str, bytes]:
    """Return the files that a stopped guest hands out in its memory at `address`, by name."""
    header = read_header(await guest.memory(address, HEADER_BYTES), region_bytes)
    archive = await guest.memory(address + HEADER_BYTES, header.length_bytes)
    return read_archive(archive, header)


def read_header(raw: bytes, region_bytes: int) -> Header:
    """Return the header; raise GuestError if it is none or its archive leaves the region."""
    if len(raw) != HEADER_BYTES:
        raise GuestError(f"the guest's results have a header of {len(raw)} bytes")
    magic, version, crc, length_bytes = _HEADER.unpack(raw)
    if magic != MAGIC:
        raise GuestError("the guest stopped without handing results out")
    if version != VERSION:
        raise GuestError(
            f"the guest's results have version {version}, not {VERSION}",
            remedy="build the agent of this checkout: cargo build --release",
        )
    if length_bytes > region_bytes - HEADER_BYTES:
        raise GuestError(f"the guest claims {length_bytes} bytes of results, more than fit")
    return Header(crc, length_bytes)


def read_archive(archive: bytes, header: Header) -> dict[str, bytes]:
    """Return the files of the archive by name: regular files with plain names, nothing else.

    Raises GuestError when the archive is damaged or holds anything that is not allowed.
    """
    if len(archive) != header.length_bytes or zlib.crc32(archive) != header.crc:
        raise GuestError("the guest's results do not match their checksum")
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                _check(member, files)
                files[member.name] = _content(tar, member)
    except (tarfile.TarError, ValueError, EOFError, OverflowError) as error:
        raise GuestError(f"the guest's results are not a sound tar archive: {error}") from error
    return files


def _check(member: tarfile.TarInfo, files: dict[str, bytes]) -> None:
    if not member.isreg() or not _NAME.fullmatch(member.name):
        raise GuestError(f"the guest hands out {member.name!r}, which is not a plain file")
    if member.name in files or len(files) >= _MOST_FILES:
        raise GuestError(f"the guest hands out {member.name!r} twice, or too many files")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise GuestError(f"the guest's file {member.name!r} is cut off")
    return content


_SPARSE_HEADER = struct.Struct("<IHHHHIIII")
_CHUNK = struct.Struct("<HHII")
_MAGIC = 0xED26FF3A
_RAW, _DO_NOT_CARE = 0xCAC1, 0xCAC3
_MOST_BYTES = 1 << 42


def unpack(image: bytes, out: Path) -> None:
    """Write the disk's contents to `out`, or raise GuestError when the image is damaged."""
    if len(image) < _SPARSE_HEADER.size:
        raise GuestError("the disk image has no header")
    magic, major, _, head, chunk_head, block_bytes, blocks, chunks, _ = _SPARSE_HEADER.unpack_from(
        image
    )
    if (magic, major, head, chunk_head) != (_MAGIC, 1, _SPARSE_HEADER.size, _CHUNK.size):
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
