"""The fields of a case: the meaning, possible values and default of each.

Experiment files, `--set`, the options of `joj bill` and the error messages all use this one table.
A field's name is also its key in the agent's case record (agent/src/record/mod.rs).
"""

from __future__ import annotations

from jojlab.experiment.fields.allocator import ALLOCATOR_FIELDS, ALLOCATORS
from jojlab.experiment.fields.common import (
    BLOCK_FILESYSTEMS,
    COMMON_FIELDS,
    DRAWN,
    FILESYSTEMS,
    NO_DEVICE,
    RAW_NAND_DEVICE,
    RAW_NAND_FILESYSTEMS,
    WORKLOADS,
)
from jojlab.experiment.fields.device import DEVICE_FIELDS, device_values, flat
from jojlab.experiment.fields.field import Field, Value
from jojlab.experiment.fields.file import FILE_FIELDS, FILES, PASSES, RECORDS, SYNC_MODES
from jojlab.experiment.fields.program import PROGRAM_FIELDS, PROGRAMS
from jojlab.experiment.fields.replay import REPLAY_FIELDS, REPLAYS
from jojlab.experiment.fields.sqlite import ALL_SQLITE, JOURNAL_MODES, SQL, SQLITE, SQLITE_FIELDS
from jojlab.foundation.errors import UseError
from jojlab.foundation.nearest import nearest

__all__ = [
    "ALLOCATORS",
    "ALLOCATOR_FIELDS",
    "ALL_SQLITE",
    "BLOCK_FILESYSTEMS",
    "BY_NAME",
    "DEVICE_FIELDS",
    "DRAWN",
    "FIELDS",
    "FILES",
    "FILESYSTEMS",
    "JOURNAL_MODES",
    "MAX_SEED",
    "NAMED_FIELDS",
    "NO_DEVICE",
    "PASSES",
    "PROGRAMS",
    "RAW_NAND_DEVICE",
    "RAW_NAND_FILESYSTEMS",
    "RECORDS",
    "REPLAYS",
    "SQL",
    "SQLITE",
    "SYNC_MODES",
    "WORKLOADS",
    "Field",
    "Value",
    "device_values",
    "field_named",
    "flat",
]

MAX_SEED = 1 << 32

FIELDS: tuple[Field, ...] = (
    *COMMON_FIELDS,
    *SQLITE_FIELDS,
    *FILE_FIELDS,
    *REPLAY_FIELDS,
    *PROGRAM_FIELDS,
)
# Fields that are in a case only where they are named.
NAMED_FIELDS = (*ALLOCATOR_FIELDS, *DEVICE_FIELDS)
BY_NAME = {field.name: field for field in (*FIELDS, *NAMED_FIELDS)}


def field_named(name: str, where: str) -> Field:
    """Return the field called `name`; UseError with the nearest known name otherwise."""
    if name not in BY_NAME:
        raise UseError(
            f"{where}: unknown field {name!r}{nearest(name, BY_NAME)}",
            f"the fields are: {', '.join(field.name for field in FIELDS)}; and device.KEY, "
            "journal_device.KEY for a key of a device profile (joj list fields)",
        )
    return BY_NAME[name]
