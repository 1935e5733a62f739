"""Writes an initramfs: a cpio archive in the kernel's "newc" format. The same contents always give
the same bytes (no times, owners or inode numbers of the host).

The format is described in Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import PurePosixPath

_TRAILER = "TRAILER!!!"
_MAGIC = b"070701"
# The magic and 13 fields of 8 digits.
_HEAD_BYTES = 110
# cpio pads the whole archive to its block size.
_BLOCK_BYTES = 512


class Initramfs:
    """Files and folders by path; folders above a file come by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def add_folder(self, path: str) -> None:
        """Add a folder and those above it."""
        place = _relative(path)
        for folder in [*reversed(place.parents), place]:
            if str(folder) != ".":
                self._add(str(folder), stat.S_IFDIR | 0o755, b"")

    def add_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Add a regular file; adding the same content twice is fine, another is an error."""
        place = _relative(path)
        self.add_folder(str(place.parent))
        self._add(str(place), stat.S_IFREG | (0o755 if executable else 0o644), content)

    def _add(self, path: str, mode: int, content: bytes) -> None:
        if self._entries.setdefault(path, (mode, content)) != (mode, content):
            raise ValueError(f"two different entries for {path} in the initramfs")

    def archive(self) -> bytes:
        """Return the cpio archive, entries in the order of their paths."""
        out = bytearray()
        for inode, path in enumerate(sorted(self._entries), start=1):
            mode, content = self._entries[path]
            links = 2 if stat.S_ISDIR(mode) else 1
            out += _record(path, inode, mode, links, content)
        out += _record(_TRAILER, 0, 0, 1, b"")
        return bytes(out) + bytes(-len(out) % _BLOCK_BYTES)


def files_of(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of an archive that Initramfs made, by their paths without the first
    /.

    Raises ValueError when it is none.
    """
    place = 0
    while True:
        head = archive[place : place + _HEAD_BYTES]
        if len(head) < _HEAD_BYTES or not head.startswith(_MAGIC):
            raise ValueError(f"byte {place} of the initramfs begins no file")
        mode, length, name_length = (int(head[at : at + 8], 16) for at in (14, 54, 94))
        name_end = place + _HEAD_BYTES + name_length
        name = archive[place + _HEAD_BYTES : name_end - 1].decode()
        begin = name_end + -name_end % 4
        if name == _TRAILER:
            return
        if stat.S_ISREG(mode):
            yield name, archive[begin : begin + length]
        place = begin + length + -length % 4


def _relative(path: str) -> PurePosixPath:
    place = PurePosixPath(path.lstrip("/"))
    if ".." in place.parts:
        raise ValueError(f"{path} leaves the initramfs")
    return place


def _record(path: str, inode: int, mode: int, links: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device (4 fields), name size, checksum
    fields = (inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = _MAGIC + b"".join(b"%08X" % field for field in fields) + name
    return _pad(head) + _pad(content)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
