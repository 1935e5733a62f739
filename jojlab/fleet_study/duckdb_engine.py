"""Runs SQL over the tables of a fleet by DuckDB, in this process.

Each table is a view on its files; the columns `device` and `day` are those of the files' folders.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from jojlab.foundation.errors import DataError, UseError
from jojlab.trace.schema import FLEET_TABLES

Row = dict[str, Any]
# What needs more is put on the disk for a while.
_MEMORY = "3GB"
_KEYS = "hive_types = {'device': VARCHAR, 'day': VARCHAR}"


class DuckDbEngine:
    """One connection over the files of each table."""

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._files = files
        self._connection = duckdb.connect()
        for setting in (
            f"memory_limit = '{_MEMORY}'",
            f"temp_directory = '{tempfile.gettempdir()}'",
            "preserve_insertion_order = false",
            "parquet_metadata_cache = true",
        ):
            self._connection.execute(f"SET {setting}")
        for table in FLEET_TABLES:
            self._connection.execute(f"SET VARIABLE files_of_{table} = $1", [list(files[table])])
            self._connection.execute(
                f"CREATE VIEW {table} AS SELECT * EXCLUDE (filename) FROM "
                f"read_parquet(getvariable('files_of_{table}'), filename = true, "
                f"hive_partitioning = true, {_KEYS})"
            )

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT; `parameters` stand in it as $NAME."""
        try:
            answer = self._connection.execute(sql, parameters)
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise DataError(
                f"a file of the dataset is damaged: {error}", "fetch it again, or remove it"
            ) from error
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
