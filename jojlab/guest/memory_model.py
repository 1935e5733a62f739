"""A model of a core's data caches and TLBs beside the guest: the plugin of QEMU in
kernel/memory_model, which sees every load and store and changes nothing that the guest sees.

What it counts is a pure function of image, machine and what the guest is given, as the run is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, MachineError
from jojlab.foundation.places import KERNEL, RESTORE
from jojlab.foundation.tools import need_tool, package_version, run_tool
from jojlab.guest.machine import HANDOUT_BYTES, Machine

COUNTS = "memory-counts"
_FOLDER = KERNEL / "memory_model"
_SOURCES = ("plugin.c", "memory.c", "memory.h", "qemu_plugin.h")
# agent/src/lab/channel/handout.rs
_MARKS_BYTES = 4096


@dataclass(frozen=True)
class Tables:
    """Sizes of the caches and TLBs, as struct memory_config has them."""

    line_bytes: int
    l1_bytes: int
    l1_ways: int
    l2_bytes: int
    l2_ways: int
    micro_tlb_entries: int
    main_tlb_entries: int
    main_tlb_ways: int
    # What an ARM kernel maps its memory by, where it needs no page tables of its own for it.
    section_bytes: int = 1 << 20


class WatchedBuffer(NamedTuple):
    """A buffer of the kernel by its address; several may have one name."""

    name: str
    address: int
    length_bytes: int


@dataclass(frozen=True)
class Core:
    """A core: its tables, and what each miss takes. `sources` says where the numbers are from."""

    name: str
    title: str
    tables: Tables
    micro_tlb_miss_ns: float
    walk_level_ns: float
    l2_hit_ns: float
    memory_ns: float
    sources: tuple[str, ...]


CORES = {
    core.name: core
    for core in (
        Core(
            "arm11",
            "ARM1176JZF-S of the Samsung S3C6410, 533 MHz, the study's board",
            Tables(32, 16 << 10, 4, 0, 0, 10, 64, 2),
            micro_tlb_miss_ns=4,
            walk_level_ns=150,
            l2_hit_ns=0,
            memory_ns=150,
            sources=(
                "lines, micro TLB of 10 entries, main TLB of 64 entries in 2 ways: ARM1176JZF-S "
                "TRM (ARM DDI 0301H), 6.2.1, 6.2.2, 7.2; its 8 lockable entries are left out",
                "L1 of 16 KiB in 4 ways and no L2 of the S3C6410, walks that read memory: "
                "assumptions, not looked up",
                "150 ns for a line of mobile DDR and for a level of a walk, 2 cycles from the main "
                "TLB: assumptions",
            ),
        ),
        Core(
            "cortex-a9",
            "Cortex-A9 of the Samsung Exynos 4412, 1.4 GHz, the phone of the Galaxy S3",
            Tables(32, 32 << 10, 4, 1 << 20, 16, 32, 128, 2),
            micro_tlb_miss_ns=1.5,
            walk_level_ns=20,
            l2_hit_ns=20,
            memory_ns=100,
            sources=(
                "ways and lines of L1, micro TLB of 32 entries, main TLB in 2 ways: Cortex-A9 TRM "
                "(ARM DDI 0388I), 4.3.2, 7.1.1; 128 entries of the sizes that it allows: "
                "assumption",
                "L1 of 32 KiB, L2 of 1 MiB in 16 ways: Exynos 4412 user's manual, and L2_AUX_VAL "
                "of Linux's arch/arm/mach-exynos/common.c",
                "20 ns of L2, which walks read too, 100 ns of memory: assumptions",
            ),
        ),
    )
}


def plugin(cache: Cache) -> Path:
    """Return the plugin, compiled once; MachineError without its source or a compiler."""
    missing = [name for name in _SOURCES if not (_FOLDER / name).is_file()]
    if missing:
        raise MachineError(f"no {_FOLDER / missing[0]}", RESTORE)
    gcc = str(need_tool("gcc", "gcc"))

    def build(out: Path) -> None:
        flags = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
        units = [str(_FOLDER / name) for name in _SOURCES if name.endswith(".c")]
        command = [gcc, *flags, "-o", str(out / "memory_model.so"), *units]
        run_tool(command, "build the memory model")

    digest = hashlib.sha256(package_version("gcc").encode())
    digest.update(source_hash().encode())
    return cache.entry("modules", digest.hexdigest(), build) / "memory_model.so"


def source_hash() -> str:
    """Return a hash of the plugin's source, on which counts depend."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        content = (_FOLDER / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def arguments(
    cache: Cache, core: Core, machine: Machine, watched: Sequence[WatchedBuffer] = ()
) -> list[str]:
    """Return QEMU's words for the model of a core; the counts go to COUNTS, where QEMU runs."""
    marks = machine.handout_address + HANDOUT_BYTES - _MARKS_BYTES
    numbers = {"marks": marks, **asdict(core.tables)}
    words = [str(plugin(cache)), *(f"{key}={value}" for key, value in numbers.items())]
    words += [f"buffer={each.name}:{each.address:#x}:{each.length_bytes}" for each in watched]
    return ["-plugin", ",".join([*words, f"out={COUNTS}"])]


def counts_of(folder: Path) -> bytes:
    """Return what the plugin wrote where QEMU ran; GuestError where it wrote nothing."""
    try:
        return (folder / COUNTS).read_bytes()
    except FileNotFoundError:
        raise GuestError("the memory model wrote no counts") from None
