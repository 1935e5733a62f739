"""Reads SQL scripts, one a thread, as traces of apps have them, and writes a folder for the
workload `sql-recorded`. Statements end with a semicolon, or with their line: then every line is
one.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from jojlab.foundation.errors import UseError
from jojlab.recording.sql_script import (
    SUFFIX,
    DatabaseNames,
    ScriptCounts,
    SqlScript,
    SqlStatement,
    bare_statement,
    new_folder,
)

_VERBS = {
    "ALTER", "ANALYZE", "ATTACH", "BEGIN", "COMMIT", "CREATE", "DELETE", "DETACH", "DROP", "END",
    "EXPLAIN", "INSERT", "PRAGMA", "REINDEX", "RELEASE", "REPLACE", "ROLLBACK", "SAVEPOINT",
    "SELECT", "UPDATE", "VACUUM", "VALUES", "WITH",
}  # fmt: skip
_DATABASE = "main.db"
# The workload's own limits.
_MOST_BYTES = 256 << 20
_MOST_STATEMENT = 16 << 20


def write(scripts: Sequence[Path], setup: Sequence[Path], folder: Path) -> ScriptCounts:
    """Write scripts, one a connection, and what fills the database before them, to a new folder.

    Raises UseError with file and line for text that is no SQL, and for a script without any.
    """
    counts, names = ScriptCounts(), DatabaseNames()
    read = [(path, list(statements(path))) for path in scripts]
    before = [(path, list(statements(path))) for path in setup]
    for path, texts in (*read, *before):
        if not texts:
            raise UseError(f"{path}: no statement of SQL", "leave the file out")
    new_folder(folder)
    if before:
        script = SqlScript(setup[0].name, _DATABASE, counts, names)
        for _, texts in before:
            for text in texts:
                script.add(SqlStatement(text))
        script.write_setup(folder / f"setup{SUFFIX}")
    for number, (path, texts) in enumerate(read):
        script = SqlScript(path.name, _DATABASE, counts, names)
        for text in texts:
            script.add(SqlStatement(text))
        script.write(folder / f"transaction-{number:03}{SUFFIX}")
    return counts


def statements(path: Path) -> Iterator[str]:
    """Yield the statements of a file; raises UseError with the line of the first that is none."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UseError(f"{path}: more than {_MOST_BYTES >> 20} MiB", "split the script")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UseError(f"{path}: byte {error.start}: no UTF-8", "convert it: iconv -t UTF-8") from (
            error
        )
    except OSError as error:
        raise UseError(f"{path}: {error.strerror}", "name a file of SQL") from error
    lines = text.split("\n")
    found = _by_line(lines) if _is_by_line(lines) else _by_semicolon(lines)
    for number, statement in found:
        bare = bare_statement(statement)
        verb = re.match(r"\w*", bare)[0].upper()  # type: ignore[index]  # it matches anything
        if bare and verb not in _VERBS:
            raise UseError(
                f"{path}:{number}: no statement of SQL: {bare[:60]!r}",
                "end each statement with a semicolon, or give each a line of its own",
            )
        if len(statement) > _MOST_STATEMENT:
            raise UseError(f"{path}:{number}: a statement of more than 16 MiB", "leave it out")
        if bare:
            yield statement


def _is_by_line(lines: Sequence[str]) -> bool:
    """Whether every line is a statement, and some of them lack the semicolon."""
    texts = [text for line in lines if (text := line.strip())]
    ends = [sqlite3.complete_statement(text) for text in texts]
    return not all(ends) and all(
        re.match(r"\w*", text)[0].upper() in _VERBS  # type: ignore[index]  # it matches anything
        and (is_complete or sqlite3.complete_statement(f"{text};"))
        for text, is_complete in zip(texts, ends, strict=True)
    )


def _by_line(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    yield from ((number, line.strip()) for number, line in enumerate(lines, 1) if line.strip())


def _by_semicolon(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield what sqlite3_complete() says are statements, each with its first line's number.

    A line may hold several: they are cut at their semicolons.
    """
    held, first = "", 1
    for number, line in enumerate(lines, 1):
        if not held.strip():
            held, first = "", number
        for part in re.split(r"(?<=;)", f"{line}\n"):
            held += part
            if part.endswith(";") and sqlite3.complete_statement(held):
                yield first, held.strip()
                held, first = "", number
    if held.strip():
        yield first, held.strip()
