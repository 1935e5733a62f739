"""Writes scripts for the workload `sql-recorded`: statements with values, waits and databases.

What such a script does not take is left out, counted, and stands in it as a comment: PRAGMAs that
are fields of a case, databases that are attached in its middle, and text that is no UTF-8.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from jojlab.foundation.errors import UseError
from jojlab.recording import sql_settings as pragmas
from jojlab.recording import sql_text
from jojlab.recording.attached import AttachedDatabases, DatabaseNames

SUFFIX = ".sql"
_LINE_BREAKS = str.maketrans({"\r": " ", "\n": " "})
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
# Lowest and highest value of each length of an integer in SQLite's record format.
_INTEGERS = {
    0: (0, 1), 1: (2, 127), 2: (128, 32767), 3: (32768, 2**23 - 1), 4: (2**23, 2**31 - 1),
    6: (2**31, 2**47 - 1), 8: (2**47, 2**63 - 1),
}  # fmt: skip


@dataclass
class ScriptCounts:
    """The amount that was written, in statements; and what was left out, by reason.

    `left_out` changes no row of a database. What does is in `missing`: played, the scripts leave
    other rows than were recorded.
    """

    statements: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    # Files of databases that were there before the recording.
    there_before: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Return whether the scripts, played, leave the rows that were recorded."""
        return not self.missing and not self.there_before

    def lines(self) -> Iterator[str]:
        """Yield what was left out, a line each."""
        for reason, count in self.left_out.most_common():
            yield f"left out: {reason} ({count})"
        for reason, count in self.missing.most_common():
            yield f"incomplete: left out: {reason} ({count})"
        for path in self.there_before:
            yield (
                f"incomplete: {path} was there before: put what it held then into setup.sql "
                "(docs/own-sql.md)"
            )


@dataclass(frozen=True)
class SqlStatement:
    """One statement: its text, the literals of its parameters, the wait before it."""

    text: str
    values: Sequence[str] = ()
    wait_us: int = 0
    may_fail: bool = False
    # Of an ATTACH that was recorded: the file, as SQLite resolved it.
    attached_path: str | None = None


def literal_text(value: bytes) -> str:
    """Return text of these bytes as a literal, in hexadecimal digits where a line cannot hold it.

    Raises UnicodeDecodeError for what is no UTF-8.
    """
    text = value.decode()
    if _CONTROL.search(text):
        return f"text x'{value.hex()}'"
    return "'" + text.replace("'", "''") + "'"


def literal_real(value: float) -> str:
    """Return a real as a literal that gives the same bits; SQLite has no NaN."""
    if math.isnan(value):
        return "NULL"
    if math.isinf(value):
        return "9e999" if value > 0 else "-9e999"
    return repr(value)


def drawn_integer(length_bytes: int) -> str:
    """Return what draws an integer that SQLite stores in as many bytes."""
    low, high = _INTEGERS.get(length_bytes, _INTEGERS[8])
    return f"int({low},{high})"


class SqlScript:
    """One script: the statements of one connection, in order.

    `names` gives a path the bare name that databases have in scripts. One without a connection is
    what runs before anything is measured, which has its main database alone.
    """

    def __init__(
        self, connection: str, database: str, counts: ScriptCounts, names: DatabaseNames
    ) -> None:
        self._head = []
        if connection:
            self._head.append(f"--! connection {connection.translate(_LINE_BREAKS)}")
        self._head.append(f"--! database {database}")
        self._lines: list[str] = []
        self._counts = counts
        self._attached = AttachedDatabases(names, may_attach=bool(connection))
        self._wait_us = 0
        # Lines that come before others.
        self._after: dict[int, list[str]] = {}
        # Statements that were written, each of which runs once.
        self.written = 0

    def add(self, statement: SqlStatement) -> None:
        """Write a statement, or leave it out and count it; its wait stays."""
        self._wait_us += statement.wait_us
        text = statement.text.strip()
        if not sql_text.bare_statement(text).strip(";"):
            # SQLite's handle of a blob is a statement without a text.
            what = "comments alone" if text else "openings of blobs, which are no statements"
            self._counts.left_out[what] += 1
            return
        if self._leaves_out(statement, text):
            return
        text = sql_text.without_directives(text)
        # A comment at its end would hold the semicolon.
        ends = ("", ";", "\n;")
        whole = next((text + end for end in ends if sqlite3.complete_statement(text + end)), None)
        if whole is None:
            self._counts.missing["texts that do not end"] += 1
            return
        if self._wait_us:
            self._lines.append(f"--! wait_us {self._wait_us}")
            self._wait_us = 0
        if statement.may_fail:
            self._lines.append("--! may_fail")
        if statement.values:
            self._lines.append("--! bind " + ", ".join(statement.values))
        self._lines.append(whole)
        self._counts.statements += 1
        self.written += 1

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is in it that runs."""
        return not self.written

    @property
    def line(self) -> int:
        """The place of the next line, for follow()."""
        return len(self._lines)

    def follow(self, line: int, after: Sequence[tuple[str, int]]) -> None:
        """Have what begins at a line wait until so many statements of each file have ended."""
        self._after[line] = [f"--! after {file} {count}" for file, count in after]

    @property
    def attached_files(self) -> Sequence[str]:
        """The files that it has beside its main database, by their names in scripts."""
        return self._attached.files

    def write(self, path: Path) -> None:
        """Write it to a new file."""
        with path.open("x", encoding="utf-8", newline="") as stream:
            _write_lines(stream, self._head)
            _write_lines(stream, self._attached.head)
            for number, line in enumerate(self._lines):
                _write_lines(stream, self._after.get(number, ()))
                _write_lines(stream, [line])

    def _leaves_out(self, statement: SqlStatement, text: str) -> bool:
        """Return whether a script cannot have a statement; it is counted then, but for an ATTACH
        that the head has in its place.
        """
        words = sql_text.first_names(text)
        left_out, missing = "", ""
        if words[0] == "pragma":
            left_out = pragmas.refusal(words[1:])
        elif words[0] in ("attach", "detach") and statement.may_fail:
            left_out = f"{words[0].upper()} that failed"
        elif words[0] == "attach":
            values, path = statement.values, statement.attached_path
            missing = self._attached.attaches(sql_text.tokens(text), values, path)
            if not missing:
                return True
        elif words[0] == "detach":
            self._attached.detaches(sql_text.tokens(text), statement.values)
            left_out = "DETACH: a database stays attached"
        elif words[0] == "vacuum" and "into" in words[1:3]:
            left_out = "VACUUM INTO"
        if not (left_out or missing):
            missing = self._attached.lacks(text)
        if not (left_out or missing):
            return False
        counter = self._counts.missing if missing else self._counts.left_out
        counter[missing or left_out] += 1
        self._lines.append(f"-- left out: {text[:200].translate(_LINE_BREAKS)}")
        return True


def _write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    stream.writelines(f"{line}\n" for line in lines)


def new_folder(folder: Path) -> None:
    """Make a folder for scripts, or take an empty one; raises UseError for another."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UseError(f"{folder}: not empty", "name a new folder with -o")
    except OSError as error:
        raise UseError(f"{folder}: {error.strerror}", "name a new folder with -o") from error
