"""The fields of every workload: device, filesystem, which workload, and how much of it."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field
from jojlab.experiment.fields.file import FILES
from jojlab.experiment.fields.sqlite import SQLITE

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
WORKLOADS = (*SQLITE, *FILES)

COMMON_FIELDS: tuple[Field, ...] = (
    Field(
        "device",
        "profile of the modelled flash device, a name in devices/ or a path",
        "emmc-galaxy-s3",
        place=("device", "profile"),
    ),
    Field("filesystem", "filesystem", "ext4", FILESYSTEMS, place=("filesystem", "kind")),
    Field(
        "mount_options",
        "as for mount -o; the ATC'13 study mounted noatime",
        "noatime",
        place=("filesystem", "mount_options"),
    ),
    Field(
        "workload",
        "what a transaction does; of file-..., one operation with its sync is one commit",
        "sqlite-insert",
        WORKLOADS,
        place=("workload", "kind"),
    ),
    Field("transactions", "measured transactions", 200, lowest=1, highest=1_000_000),
    Field(
        "warmup_transactions", "transactions before the measured ones", 5, lowest=0, highest=100_000
    ),
)
