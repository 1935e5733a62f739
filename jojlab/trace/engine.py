"""Runs SQL over the Parquet files of captures, by DuckDB.

A view for each table of schema/ reads the files of all captures, with a column `capture`: the
number of the capture in the table `captures`. The table `capture_tables` (capture, table_name) says
which tables each capture has; of the others it has no rows, which says nothing of what happened.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import duckdb

from jojlab.foundation.errors import DataError
from jojlab.foundation.interruptible import interruptible
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
# A sample is of so many stretches of requests: DuckDB reads only the row groups that they lie in,
# and they are enough to see most of the times and places where there is I/O.
_STRETCHES = 32


@dataclass(frozen=True)
class _Part:
    """Requests of some captures: those whose request_id is in one of `ranges`, or all.

    A range goes from its first to before its end; None is no limit.
    """

    captures: range
    ranges: tuple[tuple[int | None, int | None], ...] = ()

    @property
    def condition(self) -> str:
        """What SQL says of such a request; empty for all."""
        both = (
            " AND ".join(
                [f"request_id >= {first}"] * (first is not None)
                + [f"request_id < {end}"] * (end is not None)
            )
            for first, end in self.ranges
        )
        return " OR ".join(f"({each})" for each in both)


class Engine:
    """One DuckDB connection over some captures."""

    def __init__(self, captured: Sequence[Captured]) -> None:
        self._captured = [each.capture for each in captured]
        self._requests = [each.row_counts.get("requests", 0) for each in self._captured]
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
            self._make_view(table, _Part(range(len(captured))))

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT as plain values."""
        names, rows = self._answer(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the columns of one SELECT as plain values."""
        # By arrays of NumPy: a third of the time that rows of Python's values take.
        columns = self._run(sql, parameters).fetchnumpy()
        return {name: column.tolist() for name, column in columns.items()}

    def keep(self, table: str, sql: str, parameters: Row | None = None, *, one_in: int = 1) -> None:
        """Make what one SELECT gives a table, unless it is there.

        It may be of a sample of the requests, one in so many.
        """
        if table not in self._tables:
            with self._only(self._sample(one_in)):
                self._run(f"CREATE TABLE {table} AS {sql}", parameters)
            self._tables.add(table)

    def keep_sliced(self, tables: Mapping[str, str], passing: Mapping[str, str]) -> None:
        """Put tables that are not there together of what their SELECTs give of each slice.

        The tables `passing` are made for each slice, and dropped after it.
        """
        missing = {table: sql for table, sql in tables.items() if table not in self._tables}
        for place, part in enumerate(self._slices() if missing else ()):
            with self._only(part):
                for table, sql in passing.items():
                    self._run(f"CREATE TABLE {table} AS {sql}")
                for table, sql in missing.items():
                    into = f"INSERT INTO {table}" if place else f"CREATE TABLE {table} AS"
                    self._run(f"{into} {sql}")
                for table in passing:
                    self._run(f"DROP TABLE {table}")
        self._tables.update(missing)

    def _slices(self) -> Iterator[_Part]:
        """Cut the captures into slices: several small ones in one, a large one into several."""
        begin = requests = 0
        for place, count in enumerate(self._requests):
            if requests and requests + count > _SLICE_REQUESTS:
                yield _Part(range(begin, place))
                begin, requests = place, 0
            requests += count
            if count > _SLICE_REQUESTS:
                edges = [None, *range(_SLICE_REQUESTS, count, _SLICE_REQUESTS), None]
                for bounds in pairwise(edges):
                    yield _Part(range(place, place + 1), (bounds,))
                begin, requests = place + 1, 0
        if begin < len(self._captured):
            yield _Part(range(begin, len(self._captured)))

    def _sample(self, one_in: int) -> _Part:
        """Return one in so many requests, in stretches that lie evenly in the largest capture."""
        everything = range(len(self._captured))
        step = max(self._requests, default=0) // _STRETCHES
        length = step // one_in
        if one_in == 1 or not length:
            return _Part(everything)
        begins = range(0, step * _STRETCHES, step)
        return _Part(everything, tuple((begin, begin + length) for begin in begins))

    @contextmanager
    def _only(self, part: _Part) -> Iterator[None]:
        """Within it, the large tables have the rows of one part."""
        everything = _Part(range(len(self._captured)))
        if part == everything:
            yield
            return
        for table in _LARGE:
            self._make_view(table, part)
        try:
            yield
        finally:
            for table in _LARGE:
                self._make_view(table, everything)

    def _make_view(self, table: str, part: _Part) -> None:
        captures = {place: self._captured[place] for place in part.captures}
        where = f" WHERE {part.condition}" if part.ranges else ""
        self._run(f"CREATE OR REPLACE VIEW {table} AS {select_rows(captures, table)}{where}")

    def _answer(self, sql: str, parameters: Row | None) -> tuple[list[str], list[tuple[Any, ...]]]:
        answer = self._run(sql, parameters)
        with interruptible():
            return [column[0] for column in answer.description or ()], answer.fetchall()

    def _run(self, sql: str, parameters: Row | None = None) -> duckdb.DuckDBPyConnection:
        try:
            with interruptible():
                return self._connection.execute(sql, parameters)
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise DataError(
                f"a table is damaged or cut short: {error}", "run the case again, or fetch the run"
            ) from error
