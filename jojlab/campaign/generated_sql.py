"""Transactions of SQL that are drawn from a grammar, as folders of scripts that the workload
sql-recorded plays; and the fewest of them that still do what they did.

Each statement is one that SQLite takes where it stands, so that no run of a script is incomplete.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

# A transaction: its statements, with BEGIN and COMMIT where it is more than one.
Transactions = tuple[str, ...]

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
# In a row, in a page, on several pages.
_VALUE_BYTES = (10, 300, 3000, 20_000)


@dataclass
class _Grammar:
    """The tables that there are, and what comes next."""

    draw: random.Random
    tables: list[str] = field(default_factory=lambda: ["main.t0", f"{_SECOND}.t0"])
    keys: int = 0
    names: int = 0

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

    def _dropped_table(self) -> str:
        if len(self.tables) == 2:
            return self._new_table()
        return f"DROP TABLE {self.tables.pop()};"


def drawn_scripts(count: int) -> Iterator[Transactions]:
    """Yield so many scripts, the shortest first; the same each time."""
    for number in range(count):
        grammar = _Grammar(random.Random(f"joj-{number}"))
        yield tuple(grammar.transaction() for _ in range(2 + number // 2))


def write_scripts(folder: Path, transactions: Transactions) -> Path:
    """Write a script as a folder that the workload takes; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.sql").write_text(_SCHEMA)
    (folder / "transaction.sql").write_text(_HEAD + "\n".join(transactions) + "\n")
    return folder


def is_valid(transactions: Transactions) -> bool:
    """Return whether SQLite takes every statement of a script."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute(f"ATTACH ':memory:' AS {_SECOND}")
        base.executescript(_TRIAL_SCHEMA)
        with suppress(sqlite3.Error):
            for transaction in transactions:
                base.executescript(transaction)
            return True
    return False


def fewest(
    transactions: Transactions, is_harmed: Callable[[Sequence[Transactions]], list[bool]]
) -> Transactions:
    """Return transactions of which none can be left out without the harm.

    `is_harmed` tries several scripts at once. The last ones are left out first, as others rest on
    those before them.
    """
    while True:
        shorter = [
            transactions[:place] + transactions[place + 1 :]
            for place in reversed(range(len(transactions)))
        ]
        shorter = [each for each in shorter if each and is_valid(each)]
        harmed = is_harmed(shorter) if shorter else []
        found = next((each for each, has in zip(shorter, harmed, strict=True) if has), None)
        if found is None:
            return transactions
        transactions = found
