"""Unpacks the kernel's image of arm64, which QEMU boots as it is: from a gzip file, or from an EFI
program that would unpack itself.

The layouts are those of Documentation/arm64/booting.rst (the header) and of
drivers/firmware/efi/libstub/zboot-header.S.
"""

from __future__ import annotations

import lzma
import struct
import zlib

from jojlab.foundation.errors import MachineError

_MAGIC, _MAGIC_AT = b"ARM\x64", 0x38
_GZIP = b"\x1f\x8b"
_EFI, _ZBOOT, _ZBOOT_AT = b"MZ", b"zimg", 4
# Where the payload is and how long, and what it is packed with: a name that ends with a zero.
_PAYLOAD, _PAYLOAD_AT, _PACKED_AT, _PACKED_BYTES = struct.Struct("<II"), 8, 24, 32
# More than any kernel; where the length is damaged, no such memory is asked for.
_MOST_BYTES = 1 << 30
_REMEDY = "use a kernel of Debian (joj list kernels)"


def unpack_image(packed: bytes) -> bytes:
    """Return the image; MachineError when it is none, damaged or packed unusually."""
    image = _unpacked(packed)
    if image[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise MachineError("the kernel package holds no image of arm64", _REMEDY)
    return image


def _unpacked(packed: bytes) -> bytes:
    if packed.startswith(_GZIP):
        return _decompress("gzip", packed)
    if not (packed.startswith(_EFI) and packed[_ZBOOT_AT:].startswith(_ZBOOT)):
        return packed
    if len(packed) < _PACKED_AT + _PACKED_BYTES:
        raise MachineError("the kernel image is cut off", _REMEDY)
    begin, length = _PAYLOAD.unpack_from(packed, _PAYLOAD_AT)
    name = packed[_PACKED_AT : _PACKED_AT + _PACKED_BYTES].partition(b"\0")[0]
    return _decompress(name.decode(errors="replace"), packed[begin : begin + length])


def _decompress(kind: str, payload: bytes) -> bytes:
    """A gzip stream ends with its length, and a zstd stream is followed by it."""
    whole, image = True, b""
    try:
        if kind == "gzip":
            gzip = zlib.decompressobj(wbits=31)
            image, whole = gzip.decompress(payload), gzip.eof
        elif kind.startswith("xz"):
            xz = lzma.LZMADecompressor()
            image, whole = xz.decompress(payload), xz.eof
        elif kind.startswith("zstd"):
            import pyarrow  # of what is installed for Parquet; loaded where an image is made

            (length_bytes,) = struct.unpack("<I", payload[-4:])
            if length_bytes > _MOST_BYTES:
                raise OSError(f"{length_bytes} bytes")
            unpacked = pyarrow.decompress(payload[:-4], length_bytes, codec="zstd", asbytes=True)
            image = bytes(unpacked)
        else:
            raise MachineError(f"the kernel is packed with {kind}, not gzip, xz or zstd", _REMEDY)
    except (lzma.LZMAError, zlib.error, OSError, struct.error) as error:
        raise MachineError(f"the kernel image is damaged: {error}", _REMEDY) from error
    if not whole:
        raise MachineError("the kernel image is cut off", _REMEDY)
    return image
