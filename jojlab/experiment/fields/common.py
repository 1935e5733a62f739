"""The fields of every workload: device, filesystem, which workload, and how much of it."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field
from jojlab.experiment.fields.file import FILES
from jojlab.experiment.fields.sqlite import SQLITE

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
WORKLOADS = (*SQLITE, *FILES)

# As a journal_device: the journal is on the filesystem's own device.
NO_DEVICE = "none"

COMMON_FIELDS: tuple[Field, ...] = (
    Field(
        "device",
        "profile of the modelled flash device, a name in devices/ or a path; or one that QEMU "
        "emulates, by the clock on the wall: qemu-nvme, qemu-scsi, qemu-sd",
        "emmc-galaxy-s3",
    ),
    Field("filesystem", "filesystem", "ext4", FILESYSTEMS),
    Field(
        "journal_device",
        "profile of a second modelled device that holds the journal of ext4 or the log of XFS; "
        "none: it is on the device itself",
        NO_DEVICE,
    ),
    Field(
        "completion",
        "how the modelled device's driver learns that a request is done: from the interrupt "
        "directly, as multi-queue drivers do; by a dispatch thread, as eMMC's had up to Linux "
        "4.15, that sleeps until the interrupt; or by such a thread that polls",
        "direct",
        ("direct", "interrupt", "polling"),
    ),
    Field(
        "mkfs_options",
        "further options of the filesystem's mkfs, such as -O fast_commit or -l size=64m",
        "",
    ),
    Field(
        "mount_options",
        "as for mount -o; the ATC'13 study mounted noatime",
        "noatime",
    ),
    Field(
        "workload",
        "what a transaction does; of file-..., one operation with its sync is one commit",
        "sqlite-insert",
        WORKLOADS,
    ),
    Field(
        "transactions",
        "measured transactions, over all threads or connections; duration_ms takes their place",
        200,
        lowest=1,
        highest=1_000_000,
    ),
    Field(
        "duration_ms",
        "instead of a number of transactions: each thread ends with the first one that returns "
        "after so much measured time, in which checkpoints are not counted; 0: transactions decide",
        0,
        lowest=0,
        highest=3_600_000,
    ),
    Field(
        "warmup_transactions",
        "transactions before the measured ones, over all",
        5,
        lowest=0,
        highest=100_000,
    ),
    Field(
        "background",
        "what else goes on meanwhile, as a process of its own: HD video being recorded, a CPU hog, "
        "or a second SQLite app; its I/O stands apart in the bill",
        "none",
        ("none", "video", "cpu", "sqlite"),
    ),
)
