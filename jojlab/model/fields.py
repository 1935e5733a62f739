"""The table of all fields of a case: the meaning, possible values and default of each.

Experiment files, `--set`, the options of `joj bill` and the error messages all use this one table.
A field's name is also its key in the agent's case record (agent/src/record/mod.rs). The fields of
one family of workloads stand in its module (jojlab/model/workloads).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from jojlab.foundation.errors import refuse_unknown
from jojlab.model.architecture import ARCHITECTURES, X86_64
from jojlab.model.device_keys import DEVICE_FIELDS
from jojlab.model.field import EVERY_WORKLOAD, Changes, Field
from jojlab.model.filesystem import NO_DEVICE
from jojlab.model.filesystems import FILESYSTEMS, RAW_NAND_FILESYSTEMS
from jojlab.model.software import SOFTWARE
from jojlab.model.workload import DRAWN, FAULTS
from jojlab.model.workloads import WORKLOAD_FIELDS, WORKLOADS, with_group

MAX_SEED = 1 << 32
# The device of a filesystem on raw NAND, where a case names none.
RAW_NAND_DEVICE = "nand-slc-512mb"

_target = partial(Field, changes=Changes.TARGET)
_COMMON_FIELDS: tuple[Field, ...] = (
    _target(
        "device",
        "profile of the modelled flash device: a name in devices/ or a path; or a disk that QEMU "
        "emulates, measured in real time: qemu-nvme, qemu-scsi, qemu-sd; of "
        f"{' and '.join(RAW_NAND_FILESYSTEMS)}, which is on raw NAND, the default is "
        f"{RAW_NAND_DEVICE}",
        "emmc-galaxy-s3",
        names_itself=True,
    ),
    _target("filesystem", "filesystem", "ext4", tuple(FILESYSTEMS), names_itself=True),
    _target(
        "kernel",
        "kernel of the guest: a name in kernels/ (docs/kernels.md), which is downloaded when it is "
        "asked for; the path of a folder, with a slash, in which a kernel was built; installed: "
        "that of the installed kernel headers",
        "installed",
    ),
    Field(
        "machine",
        "architecture of the guest; arm64 has a phone's instruction set, an agent of its own, and "
        "the kernel of the same version (docs/arm64.md)",
        X86_64.name,
        tuple(ARCHITECTURES),
        changes=Changes.PROCESSOR,
    ),
    _target(
        "journal_device",
        "profile of a second modelled device that holds ext4's journal or XFS's log; none: the "
        "journal is on the first device",
        NO_DEVICE,
    ),
    _target(
        "completion",
        "how the modelled device's driver completes a request: in the interrupt handler (direct), "
        "as multi-queue drivers do; in a dispatch thread that sleeps until the interrupt, as the "
        "eMMC driver had up to Linux 4.15; or in a dispatch thread that polls",
        "direct",
        ("direct", "interrupt", "polling"),
    ),
    _target("mkfs_options", "additional mkfs options, such as -O fast_commit or -l size=64m", ""),
    _target("mount_options", "options for mount -o; the ATC'13 study mounted noatime", "noatime"),
    Field(
        "workload",
        "what a transaction does; in the file-... workloads, one operation with its sync is one "
        "commit. file-passes: a new file of file_bytes is written, written again, read in order, "
        "read at random places and written at random places, each time as many records as it has; "
        "its pages are dropped from memory before it is read",
        "sqlite-insert",
        tuple(WORKLOADS),
        names_itself=True,
    ),
    Field(
        "transactions",
        "number of measured transactions, over all threads or connections; set either this or "
        "duration_ms",
        200,
        limits=(1, 1_000_000),
        group=DRAWN,
    ),
    Field(
        "duration_ms",
        "run for this long instead of a number of transactions: each thread stops at the first "
        "transaction that returns after this measured time, not counting checkpoints; 0: use "
        "transactions",
        0,
        limits=(0, 3_600_000),
        group=DRAWN,
    ),
    Field(
        "warmup_transactions",
        "transactions before the measured ones, over all threads or connections",
        5,
        limits=(0, 100_000),
        group=DRAWN,
    ),
    Field(
        "background",
        "background load in a separate process: recording HD video, a CPU hog, or a second SQLite "
        "app; the bill shows its I/O separately",
        "none",
        ("none", "video", "cpu", "sqlite"),
    ),
)

# The allocators of UBI's and UBIFS's buffers. A case has these fields only where it names one of
# them, and then runs with our own build of both modules (kernel/ubi), in an image of its own. The
# first allocator is the distribution's own.
ALLOCATORS = ("vmalloc", "kmalloc", "kmem_cache")
ALLOCATOR_FIELDS: tuple[Field, ...] = (
    Field(
        "ubi_allocator",
        "allocator of UBI's buffer peb_buf, in our own build of UBI and UBIFS (docs/raw-nand.md)",
        None,
        ALLOCATORS,
        changes=Changes.MEANS,
    ),
    Field(
        "ubifs_allocator",
        "allocator of UBIFS's buffers ileb_buf, lpt_buf, sbuf and orph_buf, in the same build",
        None,
        ALLOCATORS,
        changes=Changes.MEANS,
    ),
)

# Titles of `--help` that say more than the names of the workloads would.
_HEADINGS = {
    EVERY_WORKLOAD: "Fields of every workload",
    "sqlite": "Fields of every workload of SQLite",
    DRAWN: "Fields of workloads with a number of transactions",
    FAULTS: "Fields of workloads beneath which an error can be planted",
}


def _with_workloads(field: Field) -> Field:
    """Return the field with the workloads that have it, and the heading of its group."""
    workloads = with_group(field.group) if field.group != EVERY_WORKLOAD else ()
    heading = _HEADINGS.get(field.group) or f"Fields of {', '.join(workloads)}"
    return replace(field, workloads=workloads, heading=heading)


FIELDS: tuple[Field, ...] = tuple(map(_with_workloads, (*_COMMON_FIELDS, *WORKLOAD_FIELDS)))
# Fields that are in a case only where they are named.
NAMED_FIELDS: tuple[Field, ...] = (SOFTWARE, *ALLOCATOR_FIELDS, *DEVICE_FIELDS)
BY_NAME = {field.name: field for field in (*FIELDS, *NAMED_FIELDS)}


def field_named(name: str, where: str) -> Field:
    """Return the field called `name`; UseError with the nearest known name otherwise."""
    remedy = (
        f"the fields are: {', '.join(field.name for field in FIELDS)}; and device.KEY, "
        "journal_device.KEY for a key of a device profile (joj list fields)"
    )
    refuse_unknown(name, BY_NAME, f"{where}: unknown field {name!r}", remedy)
    return BY_NAME[name]


def is_same_work(names: set[str]) -> bool:
    """Return whether cases that differ in fields of these names do the same work."""
    return all(name in BY_NAME and not BY_NAME[name].changes_work for name in names)
