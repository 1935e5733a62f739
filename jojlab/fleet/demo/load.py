"""Apps that commit: a process of its own, which `python -m jojlab.fleet.demo.load` starts.

Each app has a few databases in a directory and one connection, to which the others are attached.
Of its transactions every third changes all of them, which is a multi-file transaction; the others
change one. Prints the number of multi-file transactions that were committed.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# Processes, as /proc/PID/comm has them, their databases, and the mode of their journals.
APPS = {
    "phonebook": (("contact2.db", "profile.db"), "truncate"),
    "mail": (("EmailProvider.db", "EmailProviderBody.db"), "persist"),
    "browser": (("History.db", "Archived.db", "Thumbnails.db"), "delete"),
    "messages": (("KakaoTalk.db", "KakaoTalk2.db"), "delete"),
}
_EVERY = 3


def run_app(name: str, directory: Path, transactions: int, pause_s: float, seed: int) -> int:
    """Commit so many transactions; return how many changed all databases."""
    Path("/proc/self/comm").write_text(name)
    databases, journal_mode = APPS[name]
    drawn = random.Random(seed)
    joined = 0
    with _opened(directory, databases, journal_mode) as connection:
        for number in range(transactions):
            is_joined = number % _EVERY == 0
            with connection:
                connection.execute("BEGIN")
                for schema in _schemas(databases)[: None if is_joined else 1]:
                    connection.execute(
                        f"INSERT INTO {schema}.rows (value) VALUES (?)", (drawn.randbytes(200),)
                    )
            joined += is_joined
            time.sleep(pause_s)
    return joined


@contextmanager
def _opened(
    directory: Path, databases: tuple[str, ...], journal_mode: str
) -> Iterator[sqlite3.Connection]:
    for name in databases:
        with closing(sqlite3.connect(directory / name)) as made:
            made.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, value BLOB)")
    # Where the first database is in memory, SQLite joins none: it has no name for a super-journal.
    first, *others = databases
    with closing(sqlite3.connect(directory / first, isolation_level=None)) as connection:
        for place, name in enumerate(others, 1):
            connection.execute(f"ATTACH ? AS db{place}", (str(directory / name),))
        for schema in _schemas(databases):
            connection.execute(f"PRAGMA {schema}.journal_mode = {journal_mode}")
        yield connection


def _schemas(databases: tuple[str, ...]) -> list[str]:
    """Return the names by which the connection has its databases."""
    return ["main", *(f"db{place}" for place in range(1, len(databases)))]


if __name__ == "__main__":
    app, folder, count, pause, its_seed = sys.argv[1:]
    print(run_app(app, Path(folder), int(count), float(pause), int(its_seed)))
