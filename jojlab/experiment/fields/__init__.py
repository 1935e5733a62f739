"""The fields of a case: what each means, which values it may have, and what it is by default.

This one table serves the experiment files, `--set`, the options of `joj bill`, and the errors.
A field's name is also its key in the agent's case record (agent/src/case/mod.rs).
"""

from __future__ import annotations

from jojlab.errors import UseError
from jojlab.experiment.fields.common import COMMON_FIELDS, FILESYSTEMS, NO_DEVICE, WORKLOADS
from jojlab.experiment.fields.field import Field, Value, nearest
from jojlab.experiment.fields.file import FILE_FIELDS, FILES, RECORDS, SYNC_MODES
from jojlab.experiment.fields.sqlite import JOURNAL_MODES, SQLITE, SQLITE_FIELDS

__all__ = [
    "BY_NAME",
    "FIELDS",
    "FILES",
    "FILESYSTEMS",
    "JOURNAL_MODES",
    "MAX_SEED",
    "NO_DEVICE",
    "RECORDS",
    "SQLITE",
    "SYNC_MODES",
    "WORKLOADS",
    "Field",
    "Value",
    "field_named",
    "nearest",
]

MAX_SEED = 1 << 32

FIELDS: tuple[Field, ...] = (*COMMON_FIELDS, *SQLITE_FIELDS, *FILE_FIELDS)
BY_NAME = {field.name: field for field in FIELDS}


def field_named(name: str, where: str) -> Field:
    """Return the field called `name`; UseError with the nearest known name otherwise."""
    if name not in BY_NAME:
        raise UseError(
            f"{where}: unknown field {name!r}{nearest(name, BY_NAME)}",
            f"the fields are: {', '.join(BY_NAME)}",
        )
    return BY_NAME[name]
