"""Writes an initramfs: a cpio archive in the kernel's "newc" format. The same contents always give
the same bytes (no times, owners or inode numbers of the host).

The format is described in Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from pathlib import PurePosixPath

_TRAILER = "TRAILER!!!"
# cpio pads the whole archive to its block size.
_BLOCK_BYTES = 512


class Initramfs:
    """Files and folders by path; folders above a file come by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes]] = {}

    def add_folder(self, path: str) -> None:
        """Adds a folder and those above it."""
        place = _relative(path)
        for folder in [*reversed(place.parents), place]:
            if str(folder) != ".":
                self._add(str(folder), stat.S_IFDIR | 0o755, b"")

    def add_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Adds a regular file; adding the same content twice is fine, another is an error."""
        place = _relative(path)
        self.add_folder(str(place.parent))
        self._add(str(place), stat.S_IFREG | (0o755 if executable else 0o644), content)

    def _add(self, path: str, mode: int, content: bytes) -> None:
        if self._entries.setdefault(path, (mode, content)) != (mode, content):
            raise ValueError(f"two different entries for {path} in the initramfs")

    def archive(self) -> bytes:
        """The cpio archive, entries in the order of their paths."""
        out = bytearray()
        for inode, path in enumerate(sorted(self._entries), start=1):
            mode, content = self._entries[path]
            links = 2 if stat.S_ISDIR(mode) else 1
            out += _record(path, inode, mode, links, content)
        out += _record(_TRAILER, 0, 0, 1, b"")
        return bytes(out) + bytes(-len(out) % _BLOCK_BYTES)


def _relative(path: str) -> PurePosixPath:
    place = PurePosixPath(path.lstrip("/"))
    if ".." in place.parts:
        raise ValueError(f"{path} leaves the initramfs")
    return place


def _record(path: str, inode: int, mode: int, links: int, content: bytes) -> bytes:
    name = path.encode() + b"\0"
    # inode, mode, uid, gid, links, mtime, size, device (4 fields), name size, checksum
    fields = (inode, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
