"""Writes the statements of a recording (joj record --sql) as scripts for the workload `sql-
recorded`: one a connection, in the order in which its statements began, with values, think times,
and the transactions of others that each follows; and the settings of SQLite.

Scripts keep the order in which transactions of other connections had ended before a recorded one.
Commits of one file come one after the other, and each knows when it was made, under its locks. A
transaction follows the commits before its own; one that only read, those before its first
statement; one that was to write and committed nothing, such as one that was rolled back, those
before it had the lock. What changed a file follows those, too, that had read it to their end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import UseError
from jojlab.foundation.lazy import duckdb
from jojlab.recording import sql_settings, sql_text
from jojlab.recording.attached import DatabaseNames
from jojlab.recording.folder import Recording, Row, path_bytes
from jojlab.recording.sql_script import (
    SUFFIX,
    ScriptCounts,
    SqlScript,
    SqlStatement,
    drawn_integer,
    literal_real,
    literal_text,
    new_folder,
)
from jojlab.recording.sql_settings import ConnectionSettings


@dataclass(frozen=True)
class RecordedUnit:
    """A transaction of one script: after how many of its written statements it begins and ends,
    the line before which it begins, and its times.
    """

    first: int
    last: int
    line: int
    begin_ns: int
    end_ns: int
    committed_ns: int | None


@dataclass(frozen=True)
class _Ends:
    """The ends of the units of a script: times, and the statements until then."""

    times: Sequence[int]
    statements: Sequence[int]

    @classmethod
    def time_order(cls, ends: Sequence[tuple[int, int]]) -> _Ends:
        ordered = sorted(ends)
        return cls(
            [time for time, _ in ordered], list(accumulate((last for _, last in ordered), max))
        )

    def count_before(self, time: int) -> int:
        """Return statements that had ended before a time."""
        at = bisect_left(self.times, time)
        return self.statements[at - 1] if at else 0


def find_followers(
    units: Sequence[Sequence[RecordedUnit]], files: Sequence[frozenset[str]]
) -> Iterator[tuple[int, RecordedUnit, list[tuple[int, int]]]]:
    """Yield the script and unit of each that follows others, with the scripts of those and how many
    of their statements come before it, as far as no unit of its script said so before.

    `files` are those of each script. The order has no circles: a script's own times never go back,
    and what is followed had ended at an earlier one.
    """
    spans = [list(_spans(own)) for own in units]
    ends = [_Ends.time_order([(end, it.last) for it, _, end in own]) for own in spans]
    commits = [
        _Ends.time_order([(end, it.last) for it, _, end in own if it.committed_ns is not None])
        for own in spans
    ]
    for script, own in enumerate(spans):
        others = [
            other
            for other in range(len(units))
            if other != script and not files[other].isdisjoint(files[script])
        ]
        known = dict.fromkeys(others, 0)
        for unit, begin, _ in own:
            after = []
            for other in others:
                of_other = commits[other] if unit.committed_ns is None else ends[other]
                count = of_other.count_before(begin)
                if count > known[other]:
                    known[other] = count
                    after.append((other, count))
            if after:
                yield script, unit, after


def _spans(units: Sequence[RecordedUnit]) -> Iterator[tuple[RecordedUnit, int, int]]:
    """Yield each unit of a script, with when it took effect, from and to; no begin before an
    earlier one.
    """
    latest = 0
    for unit in units:
        begin = unit.begin_ns if unit.committed_ns is None else unit.committed_ns
        end = unit.end_ns if unit.committed_ns is None else unit.committed_ns
        latest = max(latest, begin)
        yield unit, latest, max(latest, end)


NAME = "sql"
# What the program tried again: it changed nothing.
_AGAIN = ("SQLITE_BUSY", "SQLITE_LOCKED")
# What fails by its SQL alone fails again. All else failed by what is not there when it is played,
# such as a full disk, a signal or a database that was opened for reading; and changed nothing.
_BY_SQL = (
    "SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE",
)  # fmt: skip
_MOST_CONNECTIONS = 100
_ROUND = 10_000


@dataclass
class _Connection:
    """A connection's script, and what it is ordered by."""

    script: SqlScript
    database: str
    settings: ConnectionSettings
    units: list[RecordedUnit] = field(default_factory=list)

    @property
    def files(self) -> frozenset[str]:
        """Its databases, by their names in scripts."""
        return frozenset([self.database, *self.script.attached_files])


def write(recording: Recording, folder: Path) -> ScriptCounts:
    """Write the scripts to a new folder; every statement is in one, or counted.

    Raises UseError for a recording of calls, or with more connections than a workload has.
    """
    if not recording.has_statements:
        raise UseError(
            f"{recording.folder}: a recording of system calls", "record the SQL: joj record --sql"
        )
    counts, names = ScriptCounts(), DatabaseNames()
    for path in recording.manifest.there_before:
        counts.there_before.append(path_bytes(path).decode(errors="replace"))
    scripts = [it for it in _connections(recording, counts, names) if not it.script.is_empty]
    if len(scripts) > _MOST_CONNECTIONS:
        raise UseError(
            f"{recording.folder}: {len(scripts)} connections, and a workload has at most "
            f"{_MOST_CONNECTIONS}",
            "record a shorter part of the program",
        )
    if not scripts:
        raise UseError(f"{recording.folder}: no statement on a file", "record another program")
    new_folder(folder)
    files = [f"transaction-{number:03}{SUFFIX}" for number in range(len(scripts))]
    for number, unit, after in find_followers(
        [it.units for it in scripts], [it.files for it in scripts]
    ):
        scripts[number].script.follow(unit.line, [(files[other], count) for other, count in after])
    for name, it in zip(files, scripts, strict=True):
        it.script.write(folder / name)
    text = "".join(f"{line}\n" for line in sql_settings.lines([it.settings for it in scripts]))
    (folder / sql_settings.NAME).write_text(text, encoding="utf-8")
    return counts


def _connections(
    recording: Recording, counts: ScriptCounts, names: DatabaseNames
) -> Iterator[_Connection]:
    rows_of = {row["connection_id"]: row for row in recording.rows("connections")}
    attached: dict[int, list[Row]] = {}
    for row in recording.rows("databases"):
        if row["name"] != "main":
            attached.setdefault(row["connection_id"], []).append(row)
    begin_ns = min((row["open_ns"] for row in rows_of.values()), default=0)
    statements = _statements(recording)
    for connection_id, rows in groupby(statements, key=lambda row: row["connection_id"]):
        row = rows_of[connection_id]
        path = path_bytes(row["path"]).decode(errors="replace")
        if not path:
            _leave_out_memory(rows, attached.get(connection_id, []), counts)
            continue
        words = f"{connection_id} of process {row['pid']}, thread {row['tid']}"
        options = row.get("build_options", "").split()
        settings = ConnectionSettings(path, options, path in counts.there_before)
        connection = _Connection(
            SqlScript(words, names(path), counts, names), names(path), settings
        )
        if "DEFAULT_FOREIGN_KEYS" in options:
            connection.script.add(SqlStatement("PRAGMA foreign_keys = on"))
        before_ns = begin_ns
        for unit in _units(rows):
            before_ns = _add(connection, unit, before_ns, attached.get(connection_id, []), counts)
        yield connection


def _leave_out_memory(rows: Iterator[Row], attached: Sequence[Row], counts: ScriptCounts) -> None:
    """Count the statements of a connection whose main database has no file."""
    count = sum(1 for _ in rows)
    if any(row["path"] for row in attached):
        counts.missing["statements of a database in memory that has attached files"] += count
    else:
        counts.left_out["statements on databases in memory"] += count


def _units(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the statements of each transaction, and each statement that is in none."""
    unit: list[Row] = []
    for row in rows:
        if unit and row["transaction_id"] != unit[0]["transaction_id"]:
            yield unit
            unit = []
        unit.append(row)
        if row["transaction_id"] is None:
            yield unit
            unit = []
    if unit:
        yield unit


def _add(
    connection: _Connection,
    rows: Sequence[Row],
    before_ns: int,
    attached: Sequence[Row],
    counts: ScriptCounts,
) -> int:
    """Add the statements of one unit; return when the last of them had ended."""
    script = connection.script
    first, line = script.written, script.line
    first_word = ""
    begins = []
    for row in rows:
        try:
            text = path_bytes(row["sql"]).decode()
            values = _literals(row)
        except UnicodeDecodeError:
            counts.missing["statements with text that is no UTF-8"] += 1
            continue
        words = sql_text.first_names(text)
        first_word = words[0] if words else ""
        if first_word != "begin":
            begins.append(row["begin_ns"])
        if first_word == "pragma" and row["error"] is None:
            connection.settings.note(words[1:])
        wait_us = max(0, row["begin_ns"] - before_ns) // 1000
        before_ns = max(before_ns, row["end_ns"])
        if (error := row["error"]) and error not in _BY_SQL:
            what = "tries that found the database busy"
            if error not in _AGAIN:
                what = f"statements that failed by {error}, which changed nothing"
            counts.left_out[what] += 1
            if row["transaction_end"] == "rollback" and len(rows) > 1:
                # SQLite rolled the transaction back (sqlite.org/lang_transaction.html, 3); of a
                # statement that was alone in it nothing is left to roll back.
                script.add(SqlStatement("ROLLBACK", wait_us=wait_us))
            continue
        opened = (it for it in attached if row["begin_ns"] <= it["open_ns"] <= row["end_ns"])
        found = next(opened, None) if first_word == "attach" else None
        script.add(
            SqlStatement(
                text,
                values,
                wait_us,
                may_fail=error is not None,
                attached_path=path_bytes(found["path"]).decode() if found else None,
            )
        )
    commits = [row["committed_ns"] for row in rows if row.get("committed_ns") is not None]
    connection.settings.commits += bool(commits)
    if script.written > first:
        begin = min(begins, default=rows[0]["begin_ns"])
        end = max(row["end_ns"] for row in rows)
        committed = max(commits) if commits else None
        if (lock := lock_times(rows)) and committed is None:
            begin, end = lock
        connection.units.append(RecordedUnit(first, script.written, line, begin, end, committed))
    return before_ns


def lock_times(rows: Sequence[Row]) -> tuple[int, int] | None:
    """Return two times between which a transaction surely had the lock to write: after it had
    waited for it, and before it gave it back; None where it had it never.
    """
    writes = (row for row in rows if not row["readonly"] and row["error"] not in _AGAIN)
    if (first := next(writes, None)) is None:
        return None
    last = rows[-1]
    return first["end_ns"], first["end_ns"] if last is first else last["begin_ns"]


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
    """Return a table's rows in SQL; where it has none, the columns that a question needs."""
    files = sorted((recording.folder / name).glob("*.parquet"))
    if not files:
        own = ("parameter",) if name == "bound_values" else ("connection_id", "begin_ns")
        columns = (f"NULL::BIGINT AS {column}" for column in ("statement_id", *own))
        return f"(SELECT {', '.join(columns)} WHERE false)"
    listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{listed}])"


def _rows(recording: Recording, question: str) -> Iterator[Row]:
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
    """Return the values of all parameters of a statement; one that nothing bound is NULL."""
    literals = ["NULL"] * row["parameters"]
    for value in row["values"]:
        if value["parameter"] <= len(literals):
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
