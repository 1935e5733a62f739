"""The fields of every workload: device, filesystem, kind and length of the workload."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field
from jojlab.experiment.fields.file import FILES, PASSES
from jojlab.experiment.fields.program import PROGRAMS
from jojlab.experiment.fields.replay import REPLAYS
from jojlab.experiment.fields.sqlite import ALL_SQLITE, SQLITE
from jojlab.guest.architecture import ARCHITECTURES, X86_64

BLOCK_FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
RAW_NAND_FILESYSTEMS = ("ubifs",)
FILESYSTEMS = (*BLOCK_FILESYSTEMS, *RAW_NAND_FILESYSTEMS)
# The device of those on raw NAND, where a case names none.
RAW_NAND_DEVICE = "nand-slc-512mb"
WORKLOADS = (*ALL_SQLITE, *FILES, *PASSES, *REPLAYS, *PROGRAMS)
# Those whose operations are drawn, as many as are asked for; of a replay they are what they are.
DRAWN = (*SQLITE, "sql", *FILES)

# As a journal_device: the journal is on the filesystem's own device.
NO_DEVICE = "none"

COMMON_FIELDS: tuple[Field, ...] = (
    Field(
        "device",
        "profile of the modelled flash device: a name in devices/ or a path; or a disk that QEMU "
        "emulates, measured in real time: qemu-nvme, qemu-scsi, qemu-sd; of ubifs, which is on raw "
        f"NAND, the default is {RAW_NAND_DEVICE}",
        "emmc-galaxy-s3",
    ),
    Field("filesystem", "filesystem", "ext4", FILESYSTEMS),
    Field(
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
    ),
    Field(
        "journal_device",
        "profile of a second modelled device that holds ext4's journal or XFS's log; none: the "
        "journal is on the first device",
        NO_DEVICE,
    ),
    Field(
        "completion",
        "how the modelled device's driver completes a request: in the interrupt handler (direct), "
        "as multi-queue drivers do; in a dispatch thread that sleeps until the interrupt, as the "
        "eMMC driver had up to Linux 4.15; or in a dispatch thread that polls",
        "direct",
        ("direct", "interrupt", "polling"),
    ),
    Field(
        "mkfs_options",
        "additional mkfs options, such as -O fast_commit or -l size=64m",
        "",
    ),
    Field(
        "mount_options",
        "options for mount -o; the ATC'13 study mounted noatime",
        "noatime",
    ),
    Field(
        "workload",
        "what a transaction does; in the file-... workloads, one operation with its sync is one "
        "commit. file-passes: a new file of file_bytes is written, written again, read in order, "
        "read at random places and written at random places, each time as many records as it has; "
        "its pages are dropped from memory before it is read",
        "sqlite-insert",
        WORKLOADS,
    ),
    Field(
        "transactions",
        "number of measured transactions, over all threads or connections; set either this or "
        "duration_ms",
        200,
        lowest=1,
        highest=1_000_000,
        workloads=DRAWN,
    ),
    Field(
        "duration_ms",
        "run for this long instead of a number of transactions: each thread stops at the first "
        "transaction that returns after this measured time, not counting checkpoints; 0: use "
        "transactions",
        0,
        lowest=0,
        highest=3_600_000,
        workloads=DRAWN,
    ),
    Field(
        "warmup_transactions",
        "transactions before the measured ones, over all threads or connections",
        5,
        lowest=0,
        highest=100_000,
        workloads=DRAWN,
    ),
    Field(
        "background",
        "background load in a separate process: recording HD video, a CPU hog, or a second SQLite "
        "app; the bill shows its I/O separately",
        "none",
        ("none", "video", "cpu", "sqlite"),
    ),
)
