"""How DuckDB reads a table of several captures: their Parquet files, and whose each file is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from jojlab.trace.capture import Capture
from jojlab.trace.schema import table_schema

# Name of a column's type in schema/ -> in SQL.
_SQL_TYPES = {
    "int64": "BIGINT",
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "double": "DOUBLE",
    "binary": "BLOB",
}


def files_of(captures: Mapping[int, Capture], table: str) -> list[tuple[int, str]]:
    """Return the files of one table, each with the number of its capture."""
    return [
        (number, os.path.abspath(path))
        for number, capture in captures.items()
        for path in capture.paths(table)
    ]


def select_rows(captures: Mapping[int, Capture], table: str) -> str:
    """Return the SELECT of the rows of one table, with a column `capture`: their numbers.

    There are no rows where no capture has the table.
    """
    files = files_of(captures, table)
    if not files:
        columns = [f"NULL::{_SQL_TYPES[c.type]} AS {c.name}" for c in table_schema(table).columns]
        return f"SELECT {', '.join(['NULL::INTEGER AS capture', *columns])} WHERE false"
    names = ", ".join(_literal(path) for _, path in files)
    # With hive_partitioning "filesystem=ext4" in a folder's name would be a column.
    return (
        f"SELECT {_capture([number for number, _ in files])} AS capture, * "
        f"FROM read_parquet([{names}], hive_partitioning = false)"
    )


def _capture(numbers: list[int]) -> str:
    """Return what is the number of the capture that a row is of, by the numbers of all files.

    A constant where there is one capture: it costs nothing in a key of many million rows.
    """
    if len(set(numbers)) == 1:
        return f"{numbers[0]}::INTEGER"
    # DuckDB counts the files from 0, and the elements of a list from 1.
    return f"[{', '.join(map(str, numbers))}][file_index::INTEGER + 1]::INTEGER"


def _literal(path: str) -> str:
    """Return `path` for read_parquet in SQL, which takes *, ? and [ for patterns."""
    pattern = re.sub(r"([*?\[])", r"[\1]", path)
    return "'" + pattern.replace("'", "''") + "'"
