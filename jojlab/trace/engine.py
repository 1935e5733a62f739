"""Runs SQL over the Parquet files of captures, by DuckDB.

A view for each table of schema/ reads the files of all captures, with a column `capture`: the
number of the capture in the table `captures`. The table `capture_tables` (capture, table_name) says
which tables each capture has; of the others it has no rows, which says nothing of what happened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import duckdb

from jojlab.foundation.errors import DataError
from jojlab.trace.captured import Captured
from jojlab.trace.parquet_files import select_rows
from jojlab.trace.schema import TABLES

Row = dict[str, Any]

# What needs more is put on the disk for a while.
_MEMORY = "3GB"
# Tables that can be read in slices: those with a row or more for each request.
_LARGE = ("requests", "page_runs")
# A join of so many requests with their page runs takes some 300 MB, and a third of the time that it
# takes for each of 50 million at once (docs/decisions.md).
_SLICE_REQUESTS = 2_000_000


@dataclass(frozen=True)
class _Slice:
    """Requests of some captures; `first` to before `end` are request_ids, None is no limit."""

    captures: range
    first: int | None = None
    end: int | None = None


class Engine:
    """One DuckDB connection over some captures."""

    def __init__(self, captured: Sequence[Captured]) -> None:
        self._captured = [each.capture for each in captured]
        self._tables: set[str] = set()
        self._connection = duckdb.connect()
        self._connection.execute(f"SET memory_limit = '{_MEMORY}'")
        self._connection.execute("SET temp_directory = $1", [tempfile.gettempdir()])
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
        declared = [
            (number, table)
            for number, capture in enumerate(self._captured)
            for table in capture.tables
        ]
        self._connection.execute(
            "CREATE TABLE capture_tables (capture INTEGER, table_name VARCHAR)"
        )
        self._connection.execute(
            "INSERT INTO capture_tables SELECT unnest(?), unnest(?)",
            [[number for number, _ in declared], [table for _, table in declared]],
        )
        for table in TABLES:
            self._make_view(table, _Slice(range(len(captured))))

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT as plain values."""
        names, rows = self._answer(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the columns of one SELECT as plain values."""
        names, rows = self._answer(sql, parameters)
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
        return dict(zip(names, columns, strict=True))

    def keep(
        self, table: str, sql: str, parameters: Row | None = None, *, in_slices: bool = False
    ) -> None:
        """Make what one SELECT gives a table, unless it is there."""
        if table in self._tables:
            return
        if in_slices:
            self._run(f"CREATE TABLE {table} AS SELECT * FROM ({sql}) LIMIT 0", parameters)
            for each in self._slices():
                with self._only(each):
                    self._run(f"INSERT INTO {table} {sql}", parameters)
        else:
            self._run(f"CREATE TABLE {table} AS {sql}", parameters)
        self._tables.add(table)

    def _slices(self) -> Iterator[_Slice]:
        """Cut the captures into slices: several small ones in one, a large one into several."""
        counted = self._run("SELECT capture, count(*) FROM requests GROUP BY capture").fetchall()
        counts = dict(counted)
        begin = requests = 0
        for place in range(len(self._captured)):
            count = counts.get(place, 0)
            if requests and requests + count > _SLICE_REQUESTS:
                yield _Slice(range(begin, place))
                begin, requests = place, 0
            requests += count
            if count > _SLICE_REQUESTS:
                edges = [None, *range(_SLICE_REQUESTS, count, _SLICE_REQUESTS), None]
                for first, end in pairwise(edges):
                    yield _Slice(range(place, place + 1), first, end)
                begin, requests = place + 1, 0
        if begin < len(self._captured):
            yield _Slice(range(begin, len(self._captured)))

    @contextmanager
    def _only(self, each: _Slice) -> Iterator[None]:
        """Within it, the large tables have the rows of one slice."""
        everything = _Slice(range(len(self._captured)))
        if each == everything:
            yield
            return
        for table in _LARGE:
            self._make_view(table, each)
        try:
            yield
        finally:
            for table in _LARGE:
                self._make_view(table, everything)

    def _make_view(self, table: str, each: _Slice) -> None:
        captures = {place: self._captured[place] for place in each.captures}
        bounds = [f"request_id >= {each.first}"] if each.first is not None else []
        bounds += [f"request_id < {each.end}"] if each.end is not None else []
        where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
        self._run(f"CREATE OR REPLACE VIEW {table} AS {select_rows(captures, table)}{where}")

    def _answer(self, sql: str, parameters: Row | None) -> tuple[list[str], list[tuple[Any, ...]]]:
        answer = self._run(sql, parameters)
        return [column[0] for column in answer.description or ()], answer.fetchall()

    def _run(self, sql: str, parameters: Row | None = None) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, parameters)
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise DataError(
                f"a table is damaged or cut short: {error}", "run the case again, or fetch the run"
            ) from error
