"""The contract of the tables: reads schema/TABLE.toml into typed columns and Arrow schemas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from msgspec import Struct

from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.lazy import pa
from jojlab.foundation.places import SCHEMA

# The tables of one capture, in the order in which they are read, checked and hashed.
TABLES = (
    *("requests", "page_runs", "flash_operations", "files", "transactions", "writers", "counters"),
    "manifest",
)

SCHEMA_VERSION = 3

# Those of a collector's segment, in the order of its file; `segments` has one row.
FLEET_TABLES = ("segments", "commits", "io_sums", "file_sums", "file_lives")

FLEET_SCHEMA_VERSION = 1

_FORM = "restore the schema folder from the repository"

# Name of a column's type -> of the function of pyarrow that makes it.
_ARROW_TYPES = {
    "int64": "int64",
    "string": "string",
    "bool": "bool_",
    "double": "float64",
    "binary": "binary",
}


class Column(Struct, frozen=True, forbid_unknown_fields=True):
    """One column; `unit` is empty for names and numbers."""

    name: str
    type: Literal["int64", "string", "bool", "double", "binary"]
    meaning: str
    unit: str = ""
    nullable: bool = False


class _Document(Struct, forbid_unknown_fields=True):
    """One file of schema/."""

    table: str
    column: list[Column]


@dataclass(frozen=True)
class TableSchema:
    """One table: its columns in the order in which they stand in the file."""

    name: str
    columns: tuple[Column, ...]

    def arrow(self) -> pa.Schema:
        """Return the Arrow schema that a file of this table has."""
        return pa.schema(
            [
                pa.field(c.name, getattr(pa, _ARROW_TYPES[c.type])(), nullable=c.nullable)
                for c in self.columns
            ]
        )

    def dictionary_columns(self) -> list[str]:
        """Return the columns that a dictionary makes smaller: all but times, as few repeat."""
        return [column.name for column in self.columns if column.unit != "ns"]


@cache
def table_schema(table: str) -> TableSchema:
    """Return the schema of `table`, which may lie in a folder, as in `fleet/commits`.

    Raises MachineError when its file is missing or malformed.
    """
    path = SCHEMA / f"{table}.toml"
    try:
        document = check_document(read_toml(path, _FORM)[1], _Document, str(path), _FORM)
    except UseError as error:
        raise MachineError(error.message, _FORM) from error
    if document.table != path.stem:
        raise MachineError(f"{path}: is for {document.table!r}", _FORM)
    return TableSchema(document.table, tuple(document.column))
