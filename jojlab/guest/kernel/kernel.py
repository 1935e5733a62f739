"""A kernel as the image needs it, unpacked: of x86-64 an ELF file, of arm64 the Image."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jojlab.foundation.errors import MachineError
from jojlab.foundation.lazy import pa
from jojlab.foundation.tools import run_tool
from jojlab.model.architecture import Architecture


class Kernel(Protocol):
    """A kernel that guests boot and modules can be built for."""

    @property
    def release(self) -> str:
        """Return the release as uname -r says it."""

    @property
    def version(self) -> str:
        """The version of its package."""

    @property
    def files(self) -> Sequence[Path]:
        """The files that it is unpacked from."""

    def unpack(self, folder: Path) -> None:
        """Put the image and lib/modules into `folder`, as on the root of a system."""

    @property
    def architecture(self) -> Architecture:
        """Return the architecture that it runs on."""

    @property
    def make_words(self) -> Sequence[str]:
        """Return the words for make besides the folders, where it builds a module."""

    def headers(self, folder: Path) -> Path:
        """Return the folder that modules are built with (make -C), unpacked into `folder`."""

    def download_source(self, folder: Path) -> None:
        """Put the package with the kernel's source into `folder`."""


def unpack_packages(packages: Sequence[Path], folder: Path) -> None:
    """Unpack Debian packages into `folder`; nothing is installed."""
    for package in packages:
        run_tool(["dpkg-deb", "-x", str(package), str(folder)], f"unpack {package.name}")


def source_archive(kernel: Kernel, folder: Path) -> Path:
    """Return the archive of a kernel's source, which is downloaded and unpacked into `folder`.

    Raises MachineError where the package cannot be had or holds none.
    """
    kernel.download_source(folder)
    unpack_packages(sorted(folder.glob("linux-source-*.deb")), folder)
    found = sorted(folder.glob("usr/src/linux-source-*.tar.xz"))
    if not found:
        raise MachineError(f"the source of Linux {kernel.version} holds no archive")
    return found[0]


def packed_image(folder: Path, release: str) -> Path:
    """Return the packed image of an unpacked kernel; MachineError where there is none."""
    places = (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz")
    for place in places:
        if (folder / place).is_file():
            return folder / place
    raise MachineError(f"the kernel {release} has neither {' nor '.join(places)}")


def source_package(release: str) -> str:
    """Return the name of the package with the source of a kernel of this release."""
    return f"linux-source-{'.'.join(release.split('.')[:2])}"


_SECTOR_BYTES = 512
_XZ = b"\xfd7zXZ\0"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# How the kernel's build can pack, with the first bytes; the last ones are not unpacked here.
_KINDS = (
    ("xz", _XZ), ("gzip", _GZIP), ("zstd", _ZSTD), ("bzip2", b"BZh"),
    ("lz4", b"\x02\x21\x4c\x18"), ("lzo", b"\x89LZO"), ("lzma", b"]\0\0"),
)  # fmt: skip
# More than any kernel; where the length is damaged, no such memory is asked for.
_MOST_BYTES = 1 << 30


def unpack_elf(image: bytes) -> bytes:
    """Return the ELF kernel inside a bzImage; MachineError when it is none, or packed oddly."""
    if len(image) < 0x260 or image[0x202:0x206] != b"HdrS":
        raise MachineError("the kernel package holds no x86 bzImage", _REMEDY)
    (protocol,) = struct.unpack_from("<H", image, 0x206)
    if protocol < 0x208:
        raise MachineError("the kernel's boot protocol is older than 2.08", _REMEDY)
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * _SECTOR_BYTES + offset
    payload = image[start : start + length]
    elf = _decompress(_kind(payload), payload, _REMEDY)
    if elf[:4] != b"\x7fELF":
        raise MachineError("the unpacked kernel is not an ELF file", _REMEDY)
    return elf


_REMEDY = "use a kernel of Debian: sudo apt-get install linux-headers-amd64"


def _kind(payload: bytes) -> str:
    """Return how a payload is packed, by its first bytes."""
    for kind, magic in _KINDS:
        if payload.startswith(magic):
            return kind
    raise MachineError(f"the kernel is packed in an unknown way: {payload[:6].hex()}", _REMEDY)


_MAGIC, _MAGIC_AT = b"ARM\x64", 0x38
_EFI, _ZBOOT, _ZBOOT_AT = b"MZ", b"zimg", 4
# Where the payload is and how long, and what it is packed with: a name that ends with a zero.
_PAYLOAD, _PAYLOAD_AT, _PACKED_AT, _PACKED_BYTES = struct.Struct("<II"), 8, 24, 32
# More than any kernel; where the length is damaged, no such memory is asked for.
_ARM64_REMEDY = "use a kernel of Debian (joj list kernels)"


def unpack_image(packed: bytes) -> bytes:
    """Return the image, or raise MachineError when it is none, damaged or packed unusually."""
    image = _unpack_arm64(packed)
    if image[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise MachineError("the kernel package holds no image of arm64", _ARM64_REMEDY)
    return image


def _unpack_arm64(packed: bytes) -> bytes:
    if packed.startswith(_GZIP):
        return _decompress("gzip", packed, _ARM64_REMEDY)
    if not (packed.startswith(_EFI) and packed[_ZBOOT_AT:].startswith(_ZBOOT)):
        return packed
    if len(packed) < _PACKED_AT + _PACKED_BYTES:
        raise MachineError("the kernel image is cut off", _ARM64_REMEDY)
    begin, length = _PAYLOAD.unpack_from(packed, _PAYLOAD_AT)
    name = packed[_PACKED_AT : _PACKED_AT + _PACKED_BYTES].partition(b"\0")[0]
    payload = packed[begin : begin + length]
    return _decompress(name.decode(errors="replace"), payload, _ARM64_REMEDY)


def _decompress(kind: str, payload: bytes, remedy: str) -> bytes:
    """Return the unpacked stream; its length is at its end, or follows it where it is zstd."""
    whole, image = True, b""
    try:
        if kind == "gzip":
            gzip = zlib.decompressobj(wbits=31)
            image, whole = gzip.decompress(payload), gzip.eof
        elif kind.startswith("xz"):
            xz = lzma.LZMADecompressor()
            image, whole = xz.decompress(payload), xz.eof
        elif kind.startswith("zstd"):
            (length_bytes,) = struct.unpack("<I", payload[-4:])
            if length_bytes > _MOST_BYTES:
                raise OSError(f"{length_bytes} bytes")
            unpacked = pa.decompress(payload[:-4], length_bytes, codec="zstd", asbytes=True)
            image = bytes(unpacked)
        else:
            raise MachineError(f"the kernel is packed with {kind}, not xz, gzip or zstd", remedy)
    except (lzma.LZMAError, zlib.error, OSError, struct.error) as error:
        raise MachineError(f"the kernel image is damaged: {error}", remedy) from error
    if not whole:
        raise MachineError("the kernel image is cut off", remedy)
    return image
