"""Reads the results of a guest: a tar archive behind a small header, as
agent/src/lab/channel/handout.rs writes them. A guest is not trusted: every size, name and checksum
is checked.
"""

from __future__ import annotations

import io
import re
import struct
import tarfile
import zlib
from dataclasses import dataclass

from jojlab.guest.errors import GuestError
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
    """The files that a stopped guest hands out in its memory at `address`, by name."""
    header = read_header(await guest.memory(address, HEADER_BYTES), region_bytes)
    archive = await guest.memory(address + HEADER_BYTES, header.length_bytes)
    return read_archive(archive, header)


def read_header(raw: bytes, region_bytes: int) -> Header:
    """The header, if it is one and its archive lies within the region; GuestError otherwise."""
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
    """The files of the archive by name: regular files with plain names, nothing else.

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


def _check(member: tarfile.TarInfo, seen: dict[str, bytes]) -> None:
    if not member.isreg() or not _NAME.fullmatch(member.name):
        raise GuestError(f"the guest hands out {member.name!r}, which is not a plain file")
    if member.name in seen or len(seen) >= _MOST_FILES:
        raise GuestError(f"the guest hands out {member.name!r} twice, or too many files")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    content = file.read() if file else b""
    if len(content) != member.size:
        raise GuestError(f"the guest's file {member.name!r} is cut off")
    return content
