"""How much memory a guest has: a function of what its case writes, never of this machine.

The modelled disk keeps its contents in the guest's memory and may use three quarters of it
(kernel/flash/store.c). The memory size affects the results, because the kernel writes dirty pages
back at fractions of it. So there are only a few sizes. A case gets the smallest that fits, and a
machine with less memory refuses the case.
"""

from __future__ import annotations

import re
from pathlib import Path

from jojlab.foundation.errors import MachineError, UseError

MIB = 1 << 20
SIZES_MIB = (1024, 2048, 4096, 8192, 16384)
# Of the memory, what a case's contents may be expected to take: less than the disk's three
# quarters, as nothing but the workload's own files is foreseen exactly.
EXPECTED_PERCENT = 70
# What QEMU takes beside its guest's memory: translated code, the memory for results.
BESIDE_MIB = 512


def memory_mib(contents_bytes: int) -> int:
    """Return the memory of a guest whose disks will hold `contents_bytes`.

    Raises UseError where no size has room for them.
    """
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
