"""Runs SQL over the Parquet files of captures, by DuckDB: questions of the analyses, and queries of
a user.

A view for each table of schema/ reads the files of all captures, with a column `capture`: the
number of the capture in the table `captures`. The table `capture_tables` (capture, table_name) says
which tables each capture has; of the others it has no rows, which says nothing of what happened.

Every table of schema/ is there with the columns case_id, seed and the fields of its case added; a
field that has the name of a column (device) is added as case_device. The caller may add tables of
its own, a row a capture, which are made when a query names them.

It is no analysis: those ask a Dataset (dataset.py). The SQL here is a stranger's, and runs in a
connection of its own that is locked before it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jojlab.foundation.errors import DataError, UseError
from jojlab.foundation.lazy import duckdb, pa
from jojlab.foundation.signals import interruptible
from jojlab.trace.capture import Capture, NamedCapture
from jojlab.trace.run_folder import CaseEntry, RunFolder
from jojlab.trace.schema import TABLES, table_schema

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


Row = dict[str, Any]

# What needs more is put on the disk for a while.
MEMORY_LIMIT = "3GB"
# Tables that can be read in slices: those with a row or more for each request.
_LARGE = ("requests", "page_runs")
# A join of so many requests with their page runs takes some 300 MB, and a third of the time that it
# takes for each of 50 million at once (docs/decisions.md).
_SLICE_REQUESTS = 2_000_000
# A sample is of so many stretches of requests: DuckDB reads only the row groups that they lie in,
# and they are enough to see most of the times and places where there is I/O.
_STRETCHES = 32


def connect(*, keeps_order: bool = False) -> duckdb.DuckDBPyConnection:
    """Return a connection that reads Parquet files within a limit of memory; `keeps_order` gives
    rows in the order of the files where a query names no other.
    """
    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    connection.execute("SET temp_directory = $1", [tempfile.gettempdir()])
    connection.execute("SET preserve_insertion_order = $1", [keeps_order])
    connection.execute("SET parquet_metadata_cache = true")
    return connection


def lock_down(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    """Let the connection read no files but `paths`, no network and no variables of Python: from now
    on the SQL is a stranger's. This cannot be taken back.
    """
    # DuckDB lets SQL read every file of the folder that it may put its own on: none from now on.
    connection.execute("SET temp_directory = ''")
    connection.execute("RESET memory_limit")
    connection.execute("SET allowed_paths = $1", [list(paths)])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET lock_configuration = true")


def refuse_unless_one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raise UseError unless `sql` is one statement that reads; duckdb.Error where it is no SQL."""
    kinds = [statement.type for statement in connection.extract_statements(sql)]
    if kinds != [duckdb.StatementType.SELECT]:
        raise UseError(
            "a query is one statement that reads: SELECT, WITH, DESCRIBE, SUMMARIZE",
            "leave out other statements and further semicolons",
        )


@dataclass(frozen=True)
class _Part:
    """Requests of some captures: those whose request_id is in one of `ranges`, or all.

    A range goes from its first to before its end; None is no limit.
    """

    captures: range
    ranges: tuple[tuple[int | None, int | None], ...] = ()

    @property
    def condition(self) -> str:
        """Return what SQL says of such a request; empty for all."""
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

    def __init__(self, captured: Sequence[NamedCapture]) -> None:
        self._captured = [each.capture for each in captured]
        self._requests = [each.row_counts.get("requests", 0) for each in self._captured]
        self._tables: set[str] = set()
        self._connection = connect()
        keys = {
            "capture": pa.array(range(len(captured)), pa.int32()),
            "run": pa.array([each.run for each in captured], pa.string()),
            "case_id": pa.array([each.case_id for each in captured], pa.string()),
            "seed": pa.array([each.seed for each in captured], pa.int64()),
        }
        _create(self._connection, "captures", pa.table(keys))
        declared = [(n, table) for n, each in enumerate(self._captured) for table in each.tables]
        columns = {
            "capture": pa.array([number for number, _ in declared], pa.int32()),
            "table_name": pa.array([table for _, table in declared], pa.string()),
        }
        _create(self._connection, "capture_tables", pa.table(columns))
        for table in TABLES:
            self._make_view(table, _Part(range(len(captured))))

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT as plain values."""
        answer = self._run(sql, parameters)
        names = [column[0] for column in answer.description or ()]
        with interruptible():
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def columns(self, sql: str, parameters: Row | None = None) -> dict[str, list[Any]]:
        """Return the columns of one SELECT as plain values."""
        # By arrays of NumPy: a third of the time that rows of Python's values take.
        columns = self._run(sql, parameters).fetchnumpy()
        return {name: column.tolist() for name, column in columns.items()}

    def keep(self, table: str, sql: str, parameters: Row | None = None, *, one_in: int = 1) -> None:
        """Make what a SELECT gives, of one in so many requests, a table, unless it is there."""
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

    def _run(self, sql: str, parameters: Row | None = None) -> duckdb.DuckDBPyConnection:
        try:
            with interruptible():
                return self._connection.execute(sql, parameters)
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise DataError(
                f"a table is damaged or cut short: {error}", "run the case again, or fetch the run"
            ) from error


_SHOW_COLUMNS = "name the tables' columns with: joj query RUN 'DESCRIBE requests'"


# Columns by name, with a value for each (case_id, seed).
CaptureRows = Mapping[tuple[str, int], Mapping[str, Any]]


def query(
    run: RunFolder, sql: str, extra_tables: Mapping[str, Callable[[], CaptureRows]] | None = None
) -> pa.Table:
    """Run one SELECT; raises UseError when it is not one, or DuckDB refuses it.

    `extra_tables` are further tables by name; a value that a capture lacks is null.
    """
    found = list(run.captures())
    if not found:
        raise DataError(f"{run.path}: no case of this run has finished", "see: joj show RUN")
    entries = [(entry, seed) for entry, seed, _ in found]
    captures = {number: capture for number, (_, _, capture) in enumerate(found)}
    readable: list[str] = []
    with connect(keeps_order=True) as connection:
        for table in _tables_in(connection, sql, captures.values()):
            _create(connection, f"owners_of_{table}", _owners(table, entries))
            connection.execute(
                f"CREATE VIEW {table} AS SELECT rows.* EXCLUDE (capture), "
                f"owners.* EXCLUDE (capture) FROM ({select_rows(captures, table)}) AS rows "
                f"JOIN owners_of_{table} AS owners USING (capture)"
            )
            readable += [path for _, path in files_of(captures, table)]
        for table, make in (extra_tables or {}).items():
            if table in _words(sql):
                cases = {entry.case_id: entry for entry, _ in entries}
                _create(connection, table, _rows_table(make(), cases))
        lock_down(connection, readable)
        try:
            with interruptible():
                return connection.sql(sql).to_arrow_table()
        except duckdb.PermissionException as error:
            remedy = "a query reads the tables of the run, and no file"
            raise UseError(f"the query failed: {error}", remedy) from error
        except duckdb.Error as error:
            raise UseError(f"the query failed: {error}", _SHOW_COLUMNS) from error


def _tables_in(
    connection: duckdb.DuckDBPyConnection, sql: str, captures: Iterable[Capture]
) -> list[str]:
    """Return the tables that `sql` names, or all that there are.

    Raises UseError unless it is one SELECT, and where no capture has a table that it reads.
    """
    try:
        refuse_unless_one_select(connection, sql)
    except duckdb.Error as error:
        raise UseError(f"not SQL: {error}", _SHOW_COLUMNS) from error
    present = {table for capture in captures for table in capture.tables}
    named = [table for table in TABLES if table in _words(sql)]
    if lacking := set(_read_by(connection, sql)) & set(named) - present:
        raise UseError(
            f"no capture of this run has the table {', '.join(sorted(lacking))}",
            f"its tables: {', '.join(table for table in TABLES if table in present)}",
        )
    return [table for table in named or TABLES if table in present]


def _read_by(connection: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """Return the names of tables that `sql` reads, as DuckDB's parser finds them."""
    try:
        return {name.lower() for name in connection.get_table_names(sql)}
    except duckdb.Error:  # it says why where the query runs
        return set()


def _words(sql: str) -> set[str]:
    """Return the words of `sql`, tables among them: may load one too many, never one too few."""
    return set(re.findall(r"\w+", sql.lower()))


def _create(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("made", rows)
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM made")
    connection.unregister("made")


def _rows_table(rows: CaptureRows, cases: Mapping[str, CaseEntry]) -> pa.Table:
    """Return one row per capture: case_id, seed, the fields of its case, and what was made."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    columns = _case_columns([(cases[case_id], seed) for case_id, seed in rows], names)
    for name in names:
        values = [row.get(name) for row in rows.values()]
        absent = all(value is None for value in values)
        columns[name] = pa.array(values, pa.float64()) if absent else _column(values)
    return pa.table(columns)


def _owners(table: str, entries: Sequence[tuple[CaseEntry, int]]) -> pa.Table:
    """Return one row per capture: its number, case_id, seed and the fields of its case."""
    reserved = {"capture", *(column.name for column in table_schema(table).columns)}
    numbers = pa.array(range(len(entries)), pa.int32())
    return pa.table({"capture": numbers, **_case_columns(entries, reserved)})


def _case_columns(
    entries: Sequence[tuple[CaseEntry, int]], reserved: Collection[str]
) -> dict[str, pa.Array]:
    """Return case_id, seed and the fields of each case; one whose name is reserved is case_NAME."""
    columns: dict[str, pa.Array] = {
        "case_id": pa.array([entry.case_id for entry, _ in entries], pa.string()),
        "seed": pa.array([seed for _, seed in entries], pa.int64()),
    }
    for name in dict.fromkeys(name for entry, _ in entries for name in entry.case):
        values = [entry.case.get(name) for entry, _ in entries]
        columns[f"case_{name}" if name in reserved or name in columns else name] = _column(values)
    return columns


def _column(values: list[Any]) -> pa.Array:
    """Return values of one type as they are, mixed ones as text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return pa.array(values)
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values])
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())
