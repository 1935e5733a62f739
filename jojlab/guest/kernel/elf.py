"""Unpacks the kernel's ELF image from a bzImage, so that QEMU can boot it directly (PVH). A guest
that unpacks the kernel itself spends seconds on that under TCG.

The layout is that of Documentation/x86/boot.rst ("The Real-Mode Kernel Header").
"""

from __future__ import annotations

import lzma
import struct
import zlib

from jojlab.foundation.errors import MachineError

_SECTOR_BYTES = 512
_XZ = b"\xfd7zXZ\0"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_UNSUPPORTED = {b"BZh": "bzip2", b"\x02\x21\x4c\x18": "lz4", b"\x89LZO": "lzo",
                b"\x5d\0\0": "lzma"}  # fmt: skip
# More than any kernel; where the length is damaged, no such memory is asked for.
_MOST_BYTES = 1 << 30


def unpack_elf(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage; MachineError when it is none or packed unusually."""
    if len(image) < 0x260 or image[0x202:0x206] != b"HdrS":
        raise MachineError("the kernel package holds no x86 bzImage", _REMEDY)
    (protocol,) = struct.unpack_from("<H", image, 0x206)
    if protocol < 0x208:
        raise MachineError("the kernel's boot protocol is older than 2.08", _REMEDY)
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * _SECTOR_BYTES + offset
    elf = _decompress(image[start : start + length])
    if elf[:4] != b"\x7fELF":
        raise MachineError("the unpacked kernel is not an ELF file", _REMEDY)
    return elf


_REMEDY = "use a kernel of Debian: sudo apt-get install linux-headers-amd64"


def _unpack_zstd(payload: bytes) -> bytes:
    import pyarrow  # of what is installed for Parquet; loaded where an image is made

    (length_bytes,) = struct.unpack("<I", payload[-4:])
    if length_bytes > _MOST_BYTES:
        raise OSError(f"{length_bytes} bytes")
    unpacked = pyarrow.decompress(payload[:-4], length_bytes, codec="zstd", asbytes=True)
    return bytes(unpacked)


def _decompress(payload: bytes) -> bytes:
    """The kernel's build appends the unpacked length to the stream."""
    whole, elf = True, b""
    try:
        if payload.startswith(_XZ):
            xz = lzma.LZMADecompressor()
            elf, whole = xz.decompress(payload), xz.eof
        elif payload.startswith(_GZIP):
            gzip = zlib.decompressobj(wbits=31)
            elf, whole = gzip.decompress(payload), gzip.eof
        elif payload.startswith(_ZSTD):
            elf = _unpack_zstd(payload)
    except (lzma.LZMAError, zlib.error, OSError) as error:
        raise MachineError(f"the kernel image is damaged: {error}", _REMEDY) from error
    if not whole:
        raise MachineError("the kernel image is cut off", _REMEDY)
    if elf:
        return elf
    for magic, name in _UNSUPPORTED.items():
        if payload.startswith(magic):
            raise MachineError(f"the kernel is packed with {name}, not xz, gzip or zstd", _REMEDY)
    raise MachineError(f"the kernel is packed in an unknown way: {payload[:6].hex()}", _REMEDY)
