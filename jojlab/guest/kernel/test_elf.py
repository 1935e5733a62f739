"""Unpacking kernels, from images made here by the boot protocol's layout."""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable

import pyarrow
import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.kernel.elf import unpack_elf

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
def test_what_cannot_be_unpacked_is_told(damaged: bytes, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        unpack_elf(damaged)
