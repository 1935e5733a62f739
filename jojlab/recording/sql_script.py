"""Writes scripts for the workload `sql-recorded`: statements with values, waits and databases.

What such a script does not take is left out, counted, and stands in it as a comment: PRAGMAs that
are fields of a case, ATTACH in its middle, and text that is no UTF-8.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from jojlab.foundation.errors import UseError

SUFFIX = ".sql"
# PRAGMAs that a script may set: they change a connection, and nothing that is a field of a case.
_HARMLESS = {
    "foreign_keys", "user_version", "cache_size", "recursive_triggers", "case_sensitive_like",
    "optimize", "table_info", "table_xinfo", "table_list", "index_list", "index_info",
    "index_xinfo", "foreign_key_list", "foreign_key_check", "defer_foreign_keys",
}  # fmt: skip
_PRAGMA = re.compile(r"pragma\s+(?:\w+\.)?(\w+)\s*(=|\(|;|$)", re.IGNORECASE)
_ATTACH = re.compile(
    r"attach\s+(?:database\s+)?'((?:[^']|'')*)'\s+as\s+([\"'\[`]?)(\w+)[\"'\]`]?\s*;?$",
    re.IGNORECASE,
)
_SPACE = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))+", re.DOTALL)
_LINE_BREAKS = str.maketrans({"\r": " ", "\n": " "})
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
# Lowest and highest value of each length of an integer in SQLite's record format.
_INTEGERS = {
    0: (0, 1), 1: (2, 127), 2: (128, 32767), 3: (32768, 2**23 - 1), 4: (2**23, 2**31 - 1),
    6: (2**31, 2**47 - 1), 8: (2**47, 2**63 - 1),
}  # fmt: skip


@dataclass
class ScriptCounts:
    """How much was written: statements; and what was left out, by reason."""

    statements: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class SqlStatement:
    """One statement: its text, the literals of its parameters, the wait before it."""

    text: str
    values: Sequence[str] = ()
    wait_us: int = 0
    may_fail: bool = False


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

    `names` gives a path the bare name that databases have in scripts.
    """

    def __init__(
        self, connection: str, database: str, counts: ScriptCounts, names: Callable[[str], str]
    ) -> None:
        self._head = [f"--! connection {connection.translate(_LINE_BREAKS)}"]
        self._head.append(f"--! database {database}")
        self._lines: list[str] = []
        self._counts = counts
        self._names = names
        self._wait_us = 0

    def add(self, statement: SqlStatement) -> None:
        """Write a statement, or leave it out and count it; its wait stays."""
        self._wait_us += statement.wait_us
        text = statement.text.strip()
        if not (bare := bare_statement(text)):
            self._counts.left_out["comments alone"] += 1
            return
        if why := self._refused(bare):
            if why != "ATTACH":
                self._counts.left_out[why] += 1
                self._lines.append(f"-- left out: {bare[:200].translate(_LINE_BREAKS)}")
            return
        if "\n--!" in f"\n{text}":
            self._counts.left_out["text with a line of --!"] += 1
            return
        # A comment at its end would hold the semicolon.
        ends = ("", ";", "\n;")
        whole = next((text + end for end in ends if sqlite3.complete_statement(text + end)), None)
        if whole is None:
            self._counts.left_out["text that does not end"] += 1
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it that runs."""
        return all(line.startswith("--") for line in self._lines)

    def write(self, path: Path) -> None:
        """Write it to a new file."""
        with path.open("x", encoding="utf-8", newline="") as stream:
            _write_lines(stream, self._head)
            _write_lines(stream, self._lines)

    def write_setup(self, path: Path) -> None:
        """Write it as what runs before anything is measured, to a new file."""
        with path.open("x", encoding="utf-8", newline="") as stream:
            _write_lines(stream, [line for line in self._head if line.startswith("--! database")])
            _write_lines(stream, self._lines)

    def _refused(self, bare: str) -> str:
        """Why a script cannot have a statement; ATTACH where the head has it instead."""
        word = re.match(r"\w*", bare)[0].upper()  # type: ignore[index]  # it matches anything
        if word == "DETACH":
            return "DETACH: a database stays attached"
        if word == "ATTACH":
            return self._attached(bare)
        if word == "PRAGMA":
            found = _PRAGMA.match(bare)
            name = found[1].lower() if found else "?"
            sets = found is None or found[2] in ("=", "(")
            if sets and name not in _HARMLESS:
                return f"PRAGMA {name} with a value: a field of the case, or not known as harmless"
        if re.match(r"vacuum\s+(?:\w+\s+)?into\b", bare, re.IGNORECASE):
            return "VACUUM INTO"
        return ""

    def _attached(self, bare: str) -> str:
        found = _ATTACH.match(bare)
        if not found or not found[1] or found[1] == ":memory:":
            return "ATTACH of what is no literal name of a file"
        path = found[1].replace("''", "'")
        line = f"--! attach {self._names(path)} AS {found[3]}"
        if line not in self._head:
            self._head.append(line)
        return "ATTACH"


def bare_statement(text: str) -> str:
    """Return a statement without the blanks and comments before it."""
    found = _SPACE.match(text)
    return text[found.end() :] if found else text


def _write_lines(stream: TextIO, lines: Iterable[str]) -> None:
    stream.writelines(f"{line}\n" for line in lines)


class DatabaseNames:
    """Bare names for the files of databases: two files have two names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        """Return the name of a file."""
        if path not in self._names:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(path).name).lstrip(".-") or "main.db"
            name, number = base, 1
            while name in self._names.values():
                name = f"{Path(base).stem}-{number}{Path(base).suffix}"
                number += 1
            self._names[path] = name
        return self._names[path]


def new_folder(folder: Path) -> None:
    """Make a folder for scripts, or take an empty one; raises UseError for another."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UseError(f"{folder}: not empty", "name a new folder with -o")
    except OSError as error:
        raise UseError(f"{folder}: {error.strerror}", "name a new folder with -o") from error
