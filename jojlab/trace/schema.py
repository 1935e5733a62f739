"""The contract of the tables: reads schema/TABLE.toml into typed columns and Arrow schemas."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache

from jojlab.foundation.errors import MachineError
from jojlab.foundation.lazy import pa
from jojlab.foundation.places import SCHEMA

# The tables of one capture, in the order in which they are read, checked and hashed.
TABLES = ("requests", "page_runs", "files", "transactions", "counters", "manifest")

SCHEMA_VERSION = 1

# Name of a column's type -> of the function of pyarrow that makes it.
_ARROW_TYPES = {"int64": "int64", "string": "string", "bool": "bool_"}


@dataclass(frozen=True)
class Column:
    """One column: `type` is int64, string or bool; `unit` is empty for names and numbers."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    nullable: bool = False


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


@cache
def table_schema(table: str) -> TableSchema:
    """Return the schema of `table`; raises MachineError when its file is missing or malformed."""
    path = SCHEMA / f"{table}.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        columns = tuple(Column(**column) for column in document["column"])
        unknown = [c.name for c in columns if c.type not in _ARROW_TYPES]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise MachineError(
            f"{path}: not readable as a table's schema: {error}",
            "restore the schema folder from the repository",
        ) from error
    if document.get("table") != table or unknown:
        raise MachineError(
            f"{path}: is for {document.get('table')!r}, unknown types in columns {unknown}",
            "restore the schema folder from the repository",
        )
    return TableSchema(table, columns)
