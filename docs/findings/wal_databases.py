"""Ends a program between the syncs of one transaction over two databases in WAL.

Each commit writes the same number to both. strace ends the program at one of its syncs; what is
opened then is what a power cut at that moment leaves at best. Needs strace, and no root. Exits with
1 where the databases disagree.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from loop_disk import verdict

COMMITS, MOST_SYNCS = 3, 24


def write(folder: str) -> None:
    """Write numbers to both databases, one transaction each."""
    database = sqlite3.connect(f"{folder}/main.db", isolation_level=None)
    database.execute(f"ATTACH '{folder}/media.db' AS media")
    for schema in ("main", "media"):
        database.execute(f"PRAGMA {schema}.journal_mode = WAL")
        database.execute(f"PRAGMA {schema}.synchronous = FULL")
        database.execute(f"CREATE TABLE IF NOT EXISTS {schema}.t (number)")
    for number in range(COMMITS):
        database.execute("BEGIN")
        database.execute("INSERT INTO main.t VALUES (?)", [number])
        database.execute("INSERT INTO media.t VALUES (?)", [number])
        database.execute("COMMIT")


def rows(path: Path) -> list[int]:
    """Return the numbers in a database, after SQLite's recovery."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        try:
            return [number for (number,) in database.execute("SELECT number FROM t")]
        except sqlite3.OperationalError:  # the table is not there yet
            return []


def main() -> None:
    """End the program at each of its syncs, and compare the databases."""
    different = 0
    for sync in range(1, MOST_SYNCS + 1):
        with tempfile.TemporaryDirectory(prefix="finding-") as folder:
            words = ["strace", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e",
                     f"inject=fsync,fdatasync:signal=SIGKILL:when={sync}"]  # fmt: skip
            done = subprocess.run([*words, sys.executable, __file__, folder], check=False)
            if done.returncode == 0:
                break
            found = [rows(Path(folder, name)) for name in ("main.db", "media.db")]
        if found[0] != found[1]:
            different += 1
            print(f"ended at sync {sync}: main has {found[0]}, media has {found[1]}")
    verdict(
        different > 0,
        f"SQLite {sqlite3.sqlite_version}, one transaction over two databases in WAL: they "
        f"disagree after {different} of {sync - 1} ends",
    )


if len(sys.argv) > 1:
    write(sys.argv[1])
else:
    main()
