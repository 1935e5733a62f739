"""Tests of unpacking the images of kernels."""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable

import pyarrow
import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.kernel.kernel import unpack_elf, unpack_image

ELF = b"\x7fELF" + bytes(range(256)) * 40


def zstd(elf: bytes) -> bytes:
    return bytes(pyarrow.compress(elf, codec="zstd", asbytes=True))


def image(payload: bytes, protocol: int = 0x20F, setup_sectors: int = 2) -> bytes:
    """A bzImage with the payload 100 bytes behind the setup code."""
    setup = bytearray((max(setup_sectors, 1) + 1) * 512 if setup_sectors else 5 * 512)
    setup[0x1F1] = setup_sectors
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x206, protocol)
    struct.pack_into("<II", setup, 0x248, 100, len(payload))
    return bytes(setup) + bytes(100) + payload + b"trailing"


@pytest.mark.parametrize("setup_sectors", [0, 2, 27])
@pytest.mark.parametrize("pack", [lambda e: lzma.compress(e), gzip.compress, zstd])
def test_xz_gzip_and_zstd_are_unpacked(pack: Callable[[bytes], bytes], setup_sectors: int) -> None:
    # The kernel's build appends the unpacked length to the payload.
    payload = pack(ELF) + struct.pack("<I", len(ELF))
    assert unpack_elf(image(payload, setup_sectors=setup_sectors)) == ELF


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (b"", "no x86 bzImage"),
        (bytes(4096), "no x86 bzImage"),
        (image(lzma.compress(ELF), protocol=0x207), "older"),
        (image(b"BZh" + bytes(99)), "bzip2"),
        (image(zstd(ELF)[:-9] + bytes(9)), "damaged"),
        (image(zstd(ELF) + b"\xff" * 4), "damaged"),
        (image(b"something"), "unknown way"),
        (image(lzma.compress(b"not a kernel")), "not an ELF"),
        (image(lzma.compress(ELF)[:40]), "cut off"),
        (image(lzma.compress(ELF)[:20] + bytes(200)), "damaged"),
    ],
)
def test_a_kernel_that_cannot_be_unpacked_is_refused(damaged: bytes, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        unpack_elf(damaged)


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
def test_a_file_that_is_no_image_of_arm64_is_refused(packed: bytes, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        unpack_image(packed)
