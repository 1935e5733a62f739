"""Runs SQL over the Parquet files of captures, by DuckDB.

A view for each table of schema/ reads the files of all captures, with a column `capture`: the
number of the capture in the table `captures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from jojlab.foundation.errors import DataError
from jojlab.trace.capture import Captured
from jojlab.trace.parquet_files import file_names, file_patterns
from jojlab.trace.schema import TABLES

Row = dict[str, Any]


class Engine:
    """One DuckDB connection over some captures."""

    def __init__(self, captured: Sequence[Captured]) -> None:
        self._tables: set[str] = set()
        self._connection = duckdb.connect()
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute("SET parquet_metadata_cache = true")
        self._connection.execute(
            "CREATE TABLE captures (capture INTEGER, run VARCHAR, case_id VARCHAR, seed BIGINT)"
        )
        self._connection.execute(
            "INSERT INTO captures SELECT unnest(?), unnest(?), unnest(?), unnest(?)",
            [
                list(range(len(captured))),
                [each.run for each in captured],
                [each.case_id for each in captured],
                [each.seed for each in captured],
            ],
        )
        for table in TABLES:
            files, places = file_names([each.capture for each in captured], table)
            # DuckDB counts the files from 0, and the elements of a list from 1.
            self._connection.execute(
                f"CREATE VIEW {table} AS "
                f"SELECT {places}[file_index::INTEGER + 1]::INTEGER AS capture, * "
                f"FROM read_parquet({_literals(file_patterns(files))}, hive_partitioning = false)"
            )

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT as plain values."""
        names, rows = self._answer(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the columns of one SELECT as plain values."""
        names, rows = self._answer(sql, parameters)
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
        return dict(zip(names, columns, strict=True))

    def keep(self, table: str, sql: str) -> None:
        """Make what one SELECT gives a table, unless it is there."""
        if table not in self._tables:
            self._run(f"CREATE TABLE {table} AS {sql}", None)
            self._tables.add(table)

    def _answer(self, sql: str, parameters: Row | None) -> tuple[list[str], list[tuple[Any, ...]]]:
        answer = self._run(sql, parameters)
        return [column[0] for column in answer.description or ()], answer.fetchall()

    def _run(self, sql: str, parameters: Row | None) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, parameters)
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise DataError(
                f"a table is damaged or cut short: {error}", "run the case again, or fetch the run"
            ) from error


def _literals(texts: Sequence[str]) -> str:
    quoted = ("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{', '.join(quoted)}]"
