"""Results from an untrusted guest."""

from __future__ import annotations

import contextlib
import io
import struct
import tarfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.foundation.errors import GuestError
from jojlab.guest.handout import HEADER_BYTES, MAGIC, Header, read_archive, read_header

REGION_BYTES = 1 << 20


def header(magic: bytes = MAGIC, version: int = 1, length_bytes: int = 512) -> bytes:
    return struct.pack("<8sIIQ", magic, version, 7, length_bytes)


def archive(*members: tarfile.TarInfo | tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            info, content = member if isinstance(member, tuple) else (member, b"")
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    return read_archive(content, Header(zlib.crc32(content), len(content)))


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_a_sound_header_and_archive_are_read() -> None:
    assert read_header(header(), REGION_BYTES) == Header(7, 512)
    files = {"a.parquet": b"x" * 1000, "outcome.json": b"{}", "empty": b""}
    assert read(archive(*files.items())) == files


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        header()[:-1],
        bytes(HEADER_BYTES),
        header(version=2),
        header(length_bytes=REGION_BYTES - HEADER_BYTES + 1),
        header(length_bytes=(1 << 64) - 1),
    ],
)
def test_a_bad_header_is_refused(raw: bytes) -> None:
    with pytest.raises(GuestError):
        read_header(raw, REGION_BYTES)


@pytest.mark.parametrize(
    "name", ["../up", "/abs", "a/b", ".hidden", "", "-rf", "a\nb", "a" * 101, "ä", "..", "a\x1b[2J"]
)
def test_names_that_are_not_plain_are_refused(name: str) -> None:
    with pytest.raises(GuestError, match="plain file"):
        read(archive((name, b"x")))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
def test_members_that_are_no_regular_files_are_refused(kind: bytes) -> None:
    with pytest.raises(GuestError, match="plain file"):
        read(archive(special("a", kind, "outcome.json")))


def test_a_name_comes_once() -> None:
    with pytest.raises(GuestError, match="twice"):
        read(archive(("a", b"1"), ("a", b"2")))


def test_there_is_a_limit_to_their_number() -> None:
    with pytest.raises(GuestError, match="too many"):
        read(archive(*((f"f{i}", b"") for i in range(1001))))


def test_a_changed_byte_is_noticed() -> None:
    content = archive(("a", b"123"))
    sound = Header(zlib.crc32(content), len(content))
    with pytest.raises(GuestError, match="checksum"):
        read_archive(content[:-1] + b"\x01", sound)
    with pytest.raises(GuestError, match="checksum"):
        read_archive(content[:-1], sound)


def test_a_file_longer_than_the_archive_is_refused() -> None:
    info = tarfile.TarInfo("a")
    info.size = 1 << 40
    with pytest.raises(GuestError):
        read(info.tobuf() + bytes(1024))


@given(st.binary(max_size=2048))
def test_any_bytes_give_files_or_a_guest_error(content: bytes) -> None:
    with contextlib.suppress(GuestError):
        assert all(isinstance(value, bytes) for value in read(content).values())


@given(st.integers(0, 1535), st.binary(min_size=1, max_size=16))
def test_any_damage_inside_gives_files_or_a_guest_error(place: int, damage: bytes) -> None:
    content = archive(("a.parquet", b"123"), ("b", b"4"))
    damaged = content[:place] + damage + content[place + len(damage) :]
    try:
        files = read(damaged)
    except GuestError:
        return
    assert all("/" not in name for name in files)
