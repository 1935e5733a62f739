"""Writes the statements of a recording (joj record --sql) as scripts for the workload
`sql-recorded`: one a connection, in the order in which its statements began, with values and think
times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import UseError
from jojlab.recording.folder import Recording, Row, path_bytes
from jojlab.recording.sql_script import (
    SUFFIX,
    DatabaseNames,
    ScriptCounts,
    SqlScript,
    SqlStatement,
    drawn_integer,
    literal_real,
    literal_text,
    new_folder,
)

NAME = "sql"
# What the program tried again: it changed nothing.
_AGAIN = ("SQLITE_BUSY", "SQLITE_LOCKED")
_MOST_CONNECTIONS = 100
_ROUND = 10_000


def write(recording: Recording, folder: Path) -> ScriptCounts:
    """Write the scripts to a new folder; every statement is in one, or counted.

    Raises UseError for a recording of calls, or with more connections than a workload has.
    """
    if not recording.is_of_sql:
        raise UseError(
            f"{recording.folder}: a recording of system calls", "record the SQL: joj record --sql"
        )
    counts, names = ScriptCounts(), DatabaseNames()
    connections = {row["connection_id"]: row for row in recording.rows("connections")}
    scripts = list(_scripts(recording, connections, counts, names))
    if len(scripts) > _MOST_CONNECTIONS:
        raise UseError(
            f"{recording.folder}: {len(scripts)} connections, and a workload has at most "
            f"{_MOST_CONNECTIONS}",
            "record a shorter part of the program",
        )
    if not scripts:
        raise UseError(f"{recording.folder}: no statement on a file", "record another program")
    new_folder(folder)
    for number, script in enumerate(scripts):
        script.write(folder / f"transaction-{number:03}{SUFFIX}")
    return counts


def _scripts(
    recording: Recording, connections: dict[int, Row], counts: ScriptCounts, names: DatabaseNames
) -> Iterator[SqlScript]:
    begin_ns = min((row["open_ns"] for row in connections.values()), default=0)
    statements = _statements(recording)
    for connection_id, rows in groupby(statements, key=lambda row: row["connection_id"]):
        connection = connections[connection_id]
        path = path_bytes(connection["path"]).decode(errors="replace")
        if not path:
            counts.left_out["statements on databases in memory"] += sum(1 for _ in rows)
            continue
        said = f"{connection_id} of process {connection['pid']}, thread {connection['tid']}"
        script = SqlScript(said, names(path), counts, names)
        before_ns = begin_ns
        for row in rows:
            if row["error"] in _AGAIN:
                counts.left_out["tries that found the database busy"] += 1
                continue
            try:
                text, literals = path_bytes(row["sql"]).decode(), _literals(row)
            except UnicodeDecodeError:
                counts.left_out["text that is no UTF-8"] += 1
                continue
            script.add(
                SqlStatement(
                    text,
                    literals,
                    max(0, row["begin_ns"] - before_ns) // 1000,
                    may_fail=row["error"] is not None,
                )
            )
            before_ns = max(before_ns, row["end_ns"])
        if not script.is_empty:
            yield script


def _statements(recording: Recording) -> Iterator[Row]:
    """Yield statements by connection, as they began, each with its `values`."""
    order = "ORDER BY connection_id, begin_ns, statement_id"
    values = _rows(
        recording,
        f"SELECT v.* FROM {_table(recording, 'bound_values')} v "
        f"JOIN {_table(recording, 'statements')} s USING (statement_id) {order}, parameter",
    )
    bound = groupby(values, key=lambda row: row["statement_id"])
    of_next: tuple[int, Any] | None = next(bound, None)
    for row in _rows(recording, f"SELECT * FROM {_table(recording, 'statements')} {order}"):
        row["values"] = []
        if of_next and of_next[0] == row["statement_id"]:
            row["values"] = list(of_next[1])
            of_next = next(bound, None)
        yield row


def _table(recording: Recording, name: str) -> str:
    """A table's rows in SQL; those of its columns that a question needs where it has none."""
    files = sorted((recording.folder / name).glob("*.parquet"))
    if not files:
        column = "NULL::BIGINT AS"
        columns = f"{column} statement_id, {column} connection_id, {column} begin_ns"
        more = f", {column} parameter" if name == "bound_values" else ""
        narrowed = f"{column} statement_id{more}" if more else columns
        return f"(SELECT {narrowed} WHERE false)"
    listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{listed}])"


def _rows(recording: Recording, question: str) -> Iterator[Row]:
    import duckdb

    try:
        with duckdb.connect() as connection:
            cursor = connection.execute(question)
            names = [column[0] for column in cursor.description]
            while found := cursor.fetchmany(_ROUND):
                yield from (dict(zip(names, row, strict=True)) for row in found)
    except duckdb.Error as error:
        message = str(error).splitlines()[0]
        raise UseError(f"{recording.folder}: not readable: {message}", "record it again") from error


def _literals(row: Row) -> list[str]:
    """The values of a statement's parameters, to the last that is bound."""
    literals = ["NULL"] * min(1, row["parameters"])
    for value in row["values"]:
        literals += ["NULL"] * (value["parameter"] - len(literals))
        literals[value["parameter"] - 1] = _literal(value)
    return literals


def _literal(value: Row) -> str:
    kind, length = value["kind"], value["length_bytes"]
    if kind == "integer":
        known = value["integer"]
        return drawn_integer(length) if known is None else str(known)
    if kind == "real":
        # A shape: any that SQLite does not store as an integer.
        return "0.5" if value["real"] is None else literal_real(value["real"])
    if kind == "text":
        known = value["text"]
        return f"text({length})" if known is None else literal_text(path_bytes(known))
    if kind == "blob":
        known = value["blob"]
        return f"blob({length})" if known is None else f"x'{known.hex()}'"
    return f"zeroblob({length})" if kind == "zeroblob" else "NULL"
