"""Unpacking kernels, from images made here by the boot protocol's layout."""

from __future__ import annotations

import gzip
import lzma
import struct

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.image.kernel import unpack_elf

ELF = b"\x7fELF" + bytes(range(256)) * 40


def image(payload: bytes, protocol: int = 0x20F, setup_sectors: int = 2) -> bytes:
    """A bzImage with the payload 100 bytes behind the setup code."""
    setup = bytearray((max(setup_sectors, 1) + 1) * 512 if setup_sectors else 5 * 512)
    setup[0x1F1] = setup_sectors
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x206, protocol)
    struct.pack_into("<II", setup, 0x248, 100, len(payload))
    return bytes(setup) + bytes(100) + payload + b"trailing"


@pytest.mark.parametrize("setup_sectors", [0, 2, 27])
@pytest.mark.parametrize("pack", [lambda e: lzma.compress(e), gzip.compress])
def test_xz_and_gzip_are_unpacked(pack, setup_sectors: int) -> None:  # type: ignore[no-untyped-def]
    # The kernel's build appends the unpacked length to the payload.
    payload = pack(ELF) + struct.pack("<I", len(ELF))
    assert unpack_elf(image(payload, setup_sectors=setup_sectors)) == ELF


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (b"", "no x86 bzImage"),
        (bytes(4096), "no x86 bzImage"),
        (image(lzma.compress(ELF), protocol=0x207), "older"),
        (image(b"\x28\xb5\x2f\xfd" + bytes(99)), "zstd"),
        (image(b"something"), "unknown way"),
        (image(lzma.compress(b"not a kernel")), "not an ELF"),
        (image(lzma.compress(ELF)[:40]), "cut off"),
        (image(lzma.compress(ELF)[:20] + bytes(200)), "damaged"),
    ],
)
def test_what_cannot_be_unpacked_is_told(damaged: bytes, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        unpack_elf(damaged)
