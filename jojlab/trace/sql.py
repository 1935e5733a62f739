"""Answers SQL over the tables of a run, read-only and without access to any file.

Every table of schema/ is there with the columns case_id, seed and the fields of its case added; a
field that has the name of a column (device) is added as case_device. The caller may add tables of
its own, a row a capture, which are made when a query names them.

It is no analysis: those ask a Dataset (dataset.py). The SQL here is a stranger's, and runs in a
connection of its own that is locked before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from jojlab.foundation.errors import DataError, UseError
from jojlab.foundation.interruptible import interruptible
from jojlab.trace.capture import Capture
from jojlab.trace.parquet_files import files_of, select_rows
from jojlab.trace.run_folder import CaseEntry, RunFolder
from jojlab.trace.schema import TABLES, table_schema

_SHOW_COLUMNS = "name the tables' columns with: joj query RUN 'DESCRIBE requests'"


# Columns by name, with a value for each (case_id, seed).
Made = Mapping[tuple[str, int], Mapping[str, Any]]


def query(
    run: RunFolder, sql: str, made: Mapping[str, Callable[[], Made]] | None = None
) -> pa.Table:
    """Run one SELECT; raises UseError when it is not one, or DuckDB refuses it.

    `made` are further tables by name; a value that a capture lacks is null.
    """
    found = list(run.captures())
    if not found:
        raise DataError(f"{run.path}: no case of this run has finished", "see: joj show RUN")
    entries = [(entry, seed) for entry, seed, _ in found]
    captures = {number: capture for number, (_, _, capture) in enumerate(found)}
    readable: list[str] = []
    with duckdb.connect() as connection:
        for table in _tables_in(connection, sql, captures.values()):
            connection.register("owners", _owners(table, entries))
            connection.execute(f"CREATE TABLE owners_of_{table} AS SELECT * FROM owners")
            connection.unregister("owners")
            connection.execute(
                f"CREATE VIEW {table} AS SELECT rows.* EXCLUDE (capture), "
                f"owners.* EXCLUDE (capture) FROM ({select_rows(captures, table)}) AS rows "
                f"JOIN owners_of_{table} AS owners USING (capture)"
            )
            readable += [path for _, path in files_of(captures, table)]
        for table, make in (made or {}).items():
            if table in _words(sql):
                connection.register("made", _made(make(), [entry for entry, _ in entries]))
                connection.execute(f"CREATE TABLE {table} AS SELECT * FROM made")
                connection.unregister("made")
        # From here on the SQL of the user: no other files, no network, no Python variables.
        connection.execute("SET allowed_paths = $1", [readable])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET lock_configuration = true")
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
        statements = connection.extract_statements(sql)
        if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
            raise UseError(
                "a query is one statement that reads: SELECT, WITH, DESCRIBE, SUMMARIZE",
                "leave out other statements and further semicolons",
            )
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


def _made(rows: Made, entries: Sequence[CaseEntry]) -> pa.Table:
    """Return one row per capture: case_id, seed, the fields of its case, and what was made."""
    cases = {entry.case_id: entry.case for entry in entries}
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    columns: dict[str, pa.Array] = {
        "case_id": pa.array([case_id for case_id, _ in rows], pa.string()),
        "seed": pa.array([seed for _, seed in rows], pa.int64()),
    }
    for name in dict.fromkeys(name for case_id, _ in rows for name in cases[case_id]):
        taken = name in columns or name in names
        values = [cases[case_id].get(name) for case_id, _ in rows]
        columns[f"case_{name}" if taken else name] = _column(values)
    for name in names:
        values = [row.get(name) for row in rows.values()]
        absent = all(value is None for value in values)
        columns[name] = pa.array(values, pa.float64()) if absent else _column(values)
    return pa.table(columns)


def _owners(table: str, entries: Sequence[tuple[CaseEntry, int]]) -> pa.Table:
    """Return one row per capture: its number, case_id, seed and the fields of its case."""
    taken = {column.name for column in table_schema(table).columns} | {"capture", "case_id", "seed"}
    columns: dict[str, pa.Array] = {
        "capture": pa.array(range(len(entries)), pa.int32()),
        "case_id": pa.array([entry.case_id for entry, _ in entries]),
        "seed": pa.array([seed for _, seed in entries], pa.int64()),
    }
    fields = dict.fromkeys(name for entry, _ in entries for name in entry.case)
    for name in fields:
        values = [entry.case.get(name) for entry, _ in entries]
        columns[f"case_{name}" if name in taken else name] = _column(values)
    return pa.table(columns)


def _column(values: list[Any]) -> pa.Array:
    """Return values of one type as they are, mixed ones as text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return pa.array(values)
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values])
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())
