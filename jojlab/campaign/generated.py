"""Scripts that are drawn from a grammar: transactions of SQL, as folders of scripts, or calls on
files, as recordings; and the fewest steps of one that still do what it did.

Each step can be made where it stands, so that no run of a script is incomplete.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from jojlab.foundation.errors import MachineError
from jojlab.model.workloads import WORKLOADS, workloads_that_need
from jojlab.recording.folder import import_files

# The steps of a script. One of SQL is a transaction: its statements, with BEGIN and COMMIT where
# they are several. One of files is a word and its arguments: "append f1 300".
Steps = tuple[str, ...]

_SECOND = "second"
# For the player, and likewise for SQLite in memory, which tries a script first.
_SCHEMA = (
    "CREATE TABLE main.t0 (a INTEGER PRIMARY KEY, b);\n--! database second.db\n"
    "CREATE TABLE t0 (a INTEGER PRIMARY KEY, b);\n"
)
_HEAD = f"--! attach second.db AS {_SECOND}\n"
_TRIAL_SCHEMA = (
    "CREATE TABLE main.t0 (a INTEGER PRIMARY KEY, b);"
    "CREATE TABLE second.t0 (a INTEGER PRIMARY KEY, b);"
)
# Those that a database survives a power cut in; what each may lose besides, the manuals say.
_JOURNAL_MODES = ("delete", "persist", "truncate", "wal")
# In a row, in a page, on several pages.
_VALUE_BYTES = (10, 300, 3000, 20_000)


@dataclass
class _SqlGrammar:
    """The tables that there are, and what comes next."""

    draw: random.Random
    tables: list[str] = field(default_factory=lambda: ["main.t0", f"{_SECOND}.t0"])
    keys: int = 0
    names: int = 0
    # Two in each script: one that has no DELETE is not excused by what DELETE may lose.
    modes: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Draw the journal modes that it changes to."""
        self.modes = self.draw.sample(_JOURNAL_MODES, 2)

    def transaction(self) -> str:
        """Return the next transaction."""
        choices = (
            (5, self._change),
            (3, lambda: self._block("COMMIT")),
            (1, lambda: self._block("ROLLBACK")),
            (2, self._savepoint),
            (2, self._new_table),
            (1, self._new_index),
            (1, self._new_column),
            (1, self._dropped_table),
            (1, lambda: "VACUUM;"),
            (2, self._journal_mode),
        )
        weights = [weight for weight, _ in choices]
        [(_, made)] = self.draw.choices(choices, weights)
        return made()

    def _change(self) -> str:
        table = self.draw.choice(self.tables)
        kind = self.draw.random()
        if kind < 0.6 or not self.keys:
            self.keys += 1
            columns = f"{table} (a, b)"
            return f"INSERT INTO {columns} VALUES ({self.keys}, {self._value()});"
        if kind < 0.85:
            return f"UPDATE {table} SET b = {self._value()} WHERE a % {self._divisor()} = 0;"
        return f"DELETE FROM {table} WHERE a % {self._divisor()} = 1;"

    def _value(self) -> str:
        return f"printf('%.*c', {self.draw.choice(_VALUE_BYTES)}, '{self.draw.choice('abcdef')}')"

    def _divisor(self) -> int:
        return self.draw.randint(2, 4)

    def _changes(self) -> list[str]:
        return [self._change() for _ in range(self.draw.randint(2, 4))]

    def _block(self, end: str) -> str:
        return "\n".join(("BEGIN;", *self._changes(), f"{end};"))

    def _savepoint(self) -> str:
        inner = ("SAVEPOINT s;", *self._changes(), "ROLLBACK TO s;", "RELEASE s;")
        return "\n".join(("BEGIN;", self._change(), *inner, self._change(), "COMMIT;"))

    def _name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def _new_table(self) -> str:
        table = f"{self.draw.choice(('main', _SECOND))}.{self._name('t')}"
        self.tables.append(table)
        return f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b);"

    def _new_index(self) -> str:
        schema, table = self.draw.choice(self.tables).split(".")
        return f"CREATE INDEX {schema}.{self._name('i')} ON {table} (b);"

    def _new_column(self) -> str:
        return f"ALTER TABLE {self.draw.choice(self.tables)} ADD COLUMN {self._name('c')};"

    def _journal_mode(self) -> str:
        schema = self.draw.choice(("main", _SECOND))
        return f"PRAGMA {schema}.journal_mode = {self.draw.choice(self.modes)};"

    def _dropped_table(self) -> str:
        if len(self.tables) == 2:
            return self._new_table()
        return f"DROP TABLE {self.tables.pop()};"


def _sql_script(draw: random.Random, length: int) -> Steps:
    grammar = _SqlGrammar(draw)
    return tuple(grammar.transaction() for _ in range(length))


def _write_sql(folder: Path, steps: Steps) -> None:
    (folder / "schema.sql").write_text(_SCHEMA)
    (folder / "transaction.sql").write_text(_HEAD + "\n".join(steps) + "\n")


def _is_valid_sql(steps: Steps) -> bool:
    """Return whether SQLite takes every statement of a script."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute(f"ATTACH ':memory:' AS {_SECOND}")
        base.executescript(_TRIAL_SCHEMA)
        with suppress(sqlite3.Error):
            for step in steps:
                base.executescript(step)
            return True
    return False


# Those that a script of files has; a short list, so that names meet again.
_NAMES = ("f0", "f1", "f2", "f3")
_SIZES = (1, 300, 4096, 20_000)
# Syncs are as many as changes: without one nothing is promised.
_FILE_STEPS = (
    *("create",) * 3, *("append",) * 3, "overwrite", "truncate", "allocate", *("rename",) * 2,
    "link", "unlink", *("fsync",) * 4, *("fdatasync",) * 2, *("fsync-folder",) * 4,
)  # fmt: skip
_HAS_BYTES = ("create", "append", "overwrite", "truncate", "allocate")


def _file_script(draw: random.Random, length: int) -> Steps:
    steps: Steps = ()
    while len(steps) < length:
        word = draw.choice(_FILE_STEPS)
        first, second = draw.sample(_NAMES, 2)
        arguments = {"fsync-folder": "", "rename": f"{first} {second}", "link": f"{first} {second}"}
        step = f"{word} {arguments.get(word, first)}"
        step += f" {draw.choice(_SIZES)}" if word in _HAS_BYTES else ""
        if _is_valid_on_files((*steps, step.strip())):
            steps = (*steps, step.strip())
    return steps


def _is_valid_on_files(steps: Steps) -> bool:
    """Return whether each name is there, or free, where a step needs it so."""
    there: set[str] = set()
    for step in steps:
        word, *arguments = step.split()
        needed = {"create": (), "fsync-folder": ()}.get(word, tuple(arguments[:1]))
        if not there.issuperset(needed) or (word == "link" and arguments[1] in there):
            return False
        there -= set(arguments[:1]) if word in ("rename", "unlink") else set()
        added = {"create": arguments[:1], "rename": arguments[1:], "link": arguments[1:]}
        there |= set(added.get(word, ()))
    return True


def _calls(step: str) -> Iterator[str]:
    """Yield the calls of a step as strace prints them, each file opened and closed by itself."""
    word, *arguments = step.split()
    if word in ("rename", "link", "unlink"):
        names = ", ".join(f'"/{name}"' for name in arguments)
        yield f"{word}({names}) = 0"
        return
    name = "" if word == "fsync-folder" else arguments[0]
    size = arguments[1] if word in _HAS_BYTES else ""
    flags, calls = {
        "create": ("O_WRONLY|O_CREAT|O_TRUNC", f'write(3, ""..., {size}) = {size}'),
        "append": ("O_WRONLY|O_APPEND", f'write(3, ""..., {size}) = {size}'),
        "overwrite": ("O_WRONLY", f'pwrite64(3, ""..., {size}, 0) = {size}'),
        "truncate": ("O_WRONLY", f"ftruncate(3, {size}) = 0"),
        "allocate": ("O_WRONLY", f"fallocate(3, 0, 0, {size}) = 0"),
        "fsync": ("O_WRONLY", "fsync(3) = 0"),
        "fdatasync": ("O_WRONLY", "fdatasync(3) = 0"),
        "fsync-folder": ("O_RDONLY|O_DIRECTORY", "fsync(3) = 0"),
    }[word]
    mode = ", 0644" if "O_CREAT" in flags else ""
    yield f'openat(AT_FDCWD, "/{name}", {flags}{mode}) = 3'
    yield calls
    yield "close(3) = 0"


def _write_recording(folder: Path, steps: Steps) -> None:
    """Write the calls of a script, and the recording that they are."""
    calls = [call for step in steps for call in _calls(step)]
    shutil.rmtree(folder / FILES.subfolder, ignore_errors=True)  # of a search before
    trace = folder / "calls.strace"
    trace.write_text(
        "".join(f"1 {number / 1000:.6f} {call}\n" for number, call in enumerate(calls, 1))
    )
    counts = import_files("strace", [trace], folder / FILES.subfolder, "--strict")
    if isinstance(counts, int) or counts.reasons:
        raise MachineError(f"{trace}: no recording was made of it", "report it: a fault of joj's")


@dataclass(frozen=True)
class ScriptKind:
    """One kind of scripts: the field that names the folder `subfolder` of a script's own, for the
    workload that plays it, and what a step is called.
    """

    field: str
    subfolder: str
    step: str
    draw: Callable[[random.Random, int], Steps]
    is_valid: Callable[[Steps], bool]
    write_into: Callable[[Path, Steps], None]

    @property
    def workload(self) -> str:
        """Return the workload that plays what the field names as it is, and draws nothing."""
        needing = workloads_that_need(self.field)
        return next(name for name in needing if not WORKLOADS[name].is_drawn)

    def scripts(self, count: int) -> Iterator[Steps]:
        """Yield so many scripts, the shortest first; the same each time."""
        for number in range(count):
            yield self.draw(random.Random(f"joj-{number}"), 2 + number // 2)

    def write(self, folder: Path, steps: Steps) -> Path:
        """Write a script into a folder; return what the field names."""
        folder.mkdir(parents=True, exist_ok=True)
        self.write_into(folder, steps)
        return folder / self.subfolder

    def fewest(self, steps: Steps, is_harmed: Callable[[Sequence[Steps]], list[bool]]) -> Steps:
        """Return steps of which none can be left out without the harm.

        `is_harmed` tries several scripts at once. The last steps are left out first, as others rest
        on those before them.
        """
        while True:
            shorter = [steps[:at] + steps[at + 1 :] for at in reversed(range(len(steps)))]
            shorter = [each for each in shorter if each and self.is_valid(each)]
            harmed = is_harmed(shorter) if shorter else []
            found = next((each for each, has in zip(shorter, harmed, strict=True) if has), None)
            if found is None:
                return steps
            steps = found


SQL = ScriptKind("scripts", "", "transaction", _sql_script, _is_valid_sql, _write_sql)
FILES = ScriptKind(
    "recording", "recording", "step", _file_script, _is_valid_on_files, _write_recording
)
