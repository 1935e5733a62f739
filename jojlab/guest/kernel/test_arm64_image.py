"""The image of an arm64 kernel, in each way that it may be packed."""

from __future__ import annotations

import gzip
import lzma
import struct

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.kernel.arm64_image import unpack_image

IMAGE = bytes(0x38) + b"ARM\x64" + bytes(range(256)) * 40


def zboot(kind: bytes, payload: bytes) -> bytes:
    head = b"MZ\0\0zimg" + struct.pack("<II", 64, len(payload)) + bytes(8)
    return (head + kind.ljust(32, b"\0")).ljust(64, b"\0") + payload + b"behind it"


@pytest.mark.parametrize(
    "packed",
    [
        IMAGE,
        gzip.compress(IMAGE),
        zboot(b"gzip", gzip.compress(IMAGE)),
        zboot(b"xz", lzma.compress(IMAGE) + struct.pack("<I", len(IMAGE))),
    ],
)
def test_an_image_is_found_however_it_is_packed(packed: bytes) -> None:
    assert unpack_image(packed) == IMAGE


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"", "no image of arm64"),
        (b"\x7fELF" + bytes(100), "no image of arm64"),
        (gzip.compress(IMAGE)[:-9], "cut off"),
        (gzip.compress(IMAGE)[:2] + b"\x07" * 50, "damaged"),
        (zboot(b"gzip", gzip.compress(b"no kernel" * 9)), "no image of arm64"),
        (zboot(b"lz4", b"x"), "packed with lz4"),
        (zboot(b"zstd", b"x"), "damaged"),
        (zboot(b"gzip", b"")[:40], "cut off"),
    ],
)
def test_what_is_no_image_is_refused(packed: bytes, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        unpack_image(packed)
