"""Reads SQL scripts, one a thread, as traces of apps and dumps have them, and writes a folder for
the workload `sql-recorded`. Statements end with a semicolon, or with their line: then every line is
one.
"""

from __future__ import annotations

import codecs
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from jojlab.foundation.errors import UseError
from jojlab.recording import sql_text
from jojlab.recording.attached import DatabaseNames
from jojlab.recording.sql_script import SUFFIX, ScriptCounts, SqlScript, SqlStatement, new_folder

_VERBS = {
    "ALTER", "ANALYZE", "ATTACH", "BEGIN", "COMMIT", "CREATE", "DELETE", "DETACH", "DROP", "END",
    "EXPLAIN", "INSERT", "PRAGMA", "REINDEX", "RELEASE", "REPLACE", "ROLLBACK", "SAVEPOINT",
    "SELECT", "UPDATE", "VACUUM", "VALUES", "WITH",
}  # fmt: skip
_DATABASE = "main.db"
# The workload's own limits.
_MOST_BYTES = 256 << 20
_MOST_STATEMENT = 16 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What SQLite's parser says of text that is no statement, or not the whole of one.
_NO_STATEMENT = re.compile(
    "syntax error|incomplete input|unrecognized token|one statement at a time"
)


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
        script = SqlScript("", _DATABASE, counts, names)
        for _, texts in before:
            _add(script, texts)
        script.write(folder / f"setup{SUFFIX}")
    for number, (path, texts) in enumerate(read):
        script = SqlScript(path.name, _DATABASE, counts, names)
        _add(script, texts)
        script.write(folder / f"transaction-{number:03}{SUFFIX}")
    return counts


def _add(script: SqlScript, texts: Sequence[str]) -> None:
    for text in texts:
        # Nobody gives a value to a parameter of a script: to SQLite's shell it is NULL.
        script.add(SqlStatement(text, ["NULL"] * sql_text.parameter_count(text)))


def statements(path: Path) -> Iterator[str]:
    """Yield the statements of a file; raises UseError with the line of the first that is none."""
    text = _read(path)
    lines = text.split("\n")
    is_by_line = _is_by_line(lines)
    found = _lines_as_statements(lines) if is_by_line else sql_text.statements(text, str(path))
    for number, statement in found:
        verb = re.match(r"\w*", statement)[0].upper()  # type: ignore[index]  # it matches anything
        if verb not in _VERBS or (not is_by_line and _holds_several(statement)):
            raise UseError(
                f"{path}:{number}: no statement of SQL: {statement[:60]!r}",
                "end each statement with a semicolon, or give each a line of its own",
            )
        if len(statement) > _MOST_STATEMENT:
            raise UseError(f"{path}:{number}: a statement of more than 16 MiB", "leave it out")
        yield statement


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UseError(f"{path}: more than {_MOST_BYTES >> 20} MiB", "split the script")
        data = path.read_bytes()
    except OSError as error:
        raise UseError(f"{path}: {error.strerror}", "name a file of SQL") from error
    is_wide = data.startswith(_UTF16)
    if not is_wide and (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        is_unmarked = data[:64].count(b"\0") >= len(data[:64]) // 3
        what = "UTF-16 without a byte order mark?" if is_unmarked else "SQLite ends text there"
        remedy = "iconv -f UTF-16LE -t UTF-8" if is_unmarked else "write it as char(0)"
        raise UseError(f"{path}:{line}: a NUL character: {what}", remedy)
    try:
        text = data.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if is_wide else "UTF-8"
        remedy = "convert it: iconv -t UTF-8"
        raise UseError(f"{path}:{line}: byte {error.start} is no {what}", remedy) from error
    if text.startswith(("--! connection ", "--! database ")):
        raise UseError(f"{path}: already a script of joj's", f"play it: --scripts {path.parent}")
    sql_text.refuse_swallowed(text, str(path))
    return text


def _is_by_line(lines: Sequence[str]) -> bool:
    """Return whether every line is a statement, and some of them lack the semicolon.

    A statement that goes over lines has one that is none alone.
    """
    texts = [text for line in lines if (text := sql_text.bare_statement(line.strip()))]
    ends = [sqlite3.complete_statement(text) for text in texts]
    if all(ends) or not all(
        re.match(r"\w*", text)[0].upper() in _VERBS  # type: ignore[index]  # it matches anything
        and (is_complete or sqlite3.complete_statement(f"{text};"))
        for text, is_complete in zip(texts, ends, strict=True)
    ):
        return False
    parser = _Parser()
    return all(parser.takes(text) for text in texts)


def _holds_several(statement: str) -> bool:
    """Return whether lines that lack their semicolons became one statement, which is none."""
    words = (re.match(r"\w*", line.strip()) for line in statement.split("\n"))
    verbs = [found for found in words if found and found[0].upper() in _VERBS]
    return len(verbs) > 1 and not _Parser().takes(statement)


class _Parser:
    """SQLite's own parser: of a database without tables, and nothing is run."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        # Even EXPLAIN carries these out.
        refused = (sqlite3.SQLITE_PRAGMA, sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
        self._connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action in refused else sqlite3.SQLITE_OK
        )

    def takes(self, text: str) -> bool:
        """Return whether a text is one whole statement; its tables need not be there."""
        is_explained = re.match(r"explain\b", text, re.IGNORECASE) is not None
        try:
            self._connection.execute(text if is_explained else f"EXPLAIN {text}")
        except (sqlite3.Warning, sqlite3.Error) as error:
            # Parameters without values are as good: what is none ends before they are looked at.
            return not _NO_STATEMENT.search(str(error))
        return True


def _lines_as_statements(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if text := sql_text.bare_statement(line.strip()):
            yield number, text
