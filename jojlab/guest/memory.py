"""The memory of a guest: its size, by what a case writes, and the file that each guest maps."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.tools import need_tool

MIB = 1 << 20
SIZES_MIB = (1024, 2048, 4096, 8192, 16384)
# Of the memory, what a case's contents may be expected to take: less than the disk's three
# quarters, as nothing but the workload's own files is foreseen exactly.
EXPECTED_PERCENT = 70
# What QEMU takes beside its guest's memory: translated code, the memory for results.
BESIDE_MIB = 512


def memory_mib(contents_bytes: int) -> int:
    """Return the memory of a guest whose disks hold so much; UseError where none has room."""
    for size in SIZES_MIB:
        if contents_bytes <= size * MIB * EXPECTED_PERCENT // 100:
            return size
    most = SIZES_MIB[-1] * MIB * EXPECTED_PERCENT // 100
    raise UseError(
        f"the case writes {contents_bytes / 1e9:.1f} GB, and a guest's memory, which keeps them, "
        f"holds {most / 1e9:.1f} GB at most",
        "make the database or the files smaller, or use joj bench on a disk of this machine",
    )


def next_larger(size_mib: int) -> int | None:
    """Return the next size, None after the last."""
    return next((size for size in SIZES_MIB if size > size_mib), None)


def refuse_small_host(size_mib: int, free_bytes: int) -> None:
    """Raise MachineError when this machine has less memory free; the smallest size always passes.

    A guest takes what it touches: of the smallest a quarter as a rule, of the others most.
    """
    needed = (size_mib + BESIDE_MIB) * MIB
    if size_mib > SIZES_MIB[0] and free_bytes < needed:
        raise MachineError(
            f"the case needs a guest with {size_mib} MiB of memory, which takes "
            f"{needed / 1e9:.1f} GB; this machine has {free_bytes / 1e9:.1f} GB free",
            "make the database or the files smaller, lower --jobs, end other programs, or use a "
            "machine with more memory",
        )


def available_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the memory that programs can get without swapping (proc(5), MemAvailable)."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.MULTILINE)
    if match is None:
        raise MachineError(f"{meminfo} has no MemAvailable", "use Linux 3.14 or newer")
    return int(match[1]) * 1024


# Of zeroes at once, as a hash leaves them out: where holes begin and end in it, it reads zeroes.
_BLOCK_BYTES = 64 << 10
_ZEROES = bytes(_BLOCK_BYTES)


@dataclass(frozen=True)
class Memory:
    """The file of a guest's memory; with `is_kept` what it writes stays there, or else is its own
    until it ends.

    docs of QEMU: qemu-options, memory-backend-file, share=on|off.
    """

    path: Path
    is_kept: bool

    def backend(self, length_mib: int) -> str:
        """QEMU's words for it; a comma of the path is written twice."""
        path = str(self.path).replace(",", ",,")
        share = "on" if self.is_kept else "off"
        return f"memory-backend-file,id=ram,size={length_mib}M,mem-path={path},share={share}"


def drop_zeroes(path: Path) -> None:
    """Make holes of the pages of zeroes, where the filesystem has holes."""
    tool = need_tool("fallocate", "util-linux")
    subprocess.run([tool, "--dig-holes", path], check=False, capture_output=True)


def sha256_sparse(path: Path) -> str:
    """Return a hash of a file's content, in which zeroes count as holes; reads no large hole.

    Raises OSError when the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(path.stat().st_size.to_bytes(8))
        for block in _data_blocks(file.fileno()):
            content = os.pread(file.fileno(), _BLOCK_BYTES, block * _BLOCK_BYTES)
            if content != _ZEROES[: len(content)]:
                digest.update(block.to_bytes(8) + content)
    return digest.hexdigest()


def _data_blocks(descriptor: int) -> Iterator[int]:
    """Yield the number of each block that has data; lseek(2), SEEK_DATA."""
    block = 0
    while True:
        try:
            begin = os.lseek(descriptor, block * _BLOCK_BYTES, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        block = begin // _BLOCK_BYTES
        yield block
        block += 1
