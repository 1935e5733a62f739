"""The file that a guest's memory is mapped from. Most of it is zeroes: holes in the file."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.tools import need_tool

_PAGE_BYTES = 4096
_ZEROES = bytes(_PAGE_BYTES)


@dataclass(frozen=True)
class Memory:
    """Where a guest's memory is; what it writes is `kept` there, or else is its own until it ends.

    docs of QEMU: qemu-options, memory-backend-file, share=on|off.
    """

    path: Path
    kept: bool

    def backend(self, length_mib: int) -> str:
        """QEMU's words for it; a comma of the path is written twice."""
        path = str(self.path).replace(",", ",,")
        share = "on" if self.kept else "off"
        return f"memory-backend-file,id=ram,size={length_mib}M,mem-path={path},share={share}"


def drop_zeroes(path: Path) -> None:
    """Make holes of the pages of zeroes, where the filesystem has holes."""
    tool = need_tool("fallocate", "util-linux")
    subprocess.run([tool, "--dig-holes", path], check=False, capture_output=True)


def sha256_sparse(path: Path) -> str:
    """Return a hash of a file's content, in which zeroes count as holes; reads no hole.

    Raises OSError when the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(path.stat().st_size.to_bytes(8))
        for begin, end in _data(file.fileno()):
            for page in range(begin // _PAGE_BYTES, -(-end // _PAGE_BYTES)):
                content = os.pread(file.fileno(), _PAGE_BYTES, page * _PAGE_BYTES)
                if content != _ZEROES:
                    digest.update(page.to_bytes(8) + content)
    return digest.hexdigest()


def _data(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield where the file has data: from and up to which byte; lseek(2), SEEK_DATA."""
    end = 0
    while True:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        yield begin, end
