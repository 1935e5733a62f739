"""Commits of an unchanged Python program in new files, with the VFS of vfs/ and with stock SQLite.

The same program runs under LD_PRELOAD, or without it in several journal modes, over one database
and over three that it attaches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison import Peers, Row, arguments_of, compared, show, show_when_interrupted
from jojlab.foundation.places import cure_folder

COMMITS = 200
DATABASES = (1, 3)
# The modes of stock SQLite, and the ratio to reach: where the disk decides, one of 1 is the least.
GOALS = {"wal": 1.0, "truncate": 1.0, "delete": 1.0}
APP = """
import sqlite3, sys, time
mode, databases, commits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
names = ["main", *(f"db{number}" for number in range(2, databases + 1))]
db = sqlite3.connect("main.db", isolation_level=None)
for name in names[1:]:
    db.execute(f"ATTACH '{name}.db' AS {name}")
for name in names:
    db.execute(f"PRAGMA {name}.journal_mode = {mode}")
    db.execute(f"PRAGMA {name}.synchronous = full")
    db.execute(f"CREATE TABLE {name}.t(x)")
begin = time.perf_counter()
for _ in range(commits):
    db.execute("BEGIN")
    for name in names:
        db.execute(f"INSERT INTO {name}.t VALUES (zeroblob(100))")
    db.execute("COMMIT")
print(time.perf_counter() - begin)
"""


def commits_a_second(disk: Path, mode: str, databases: int, preload: Path | None) -> float:
    """Return how many commits the program made, in real time, in a folder of the disk."""
    environment = (
        dict(os.environ) if preload is None else {**os.environ, "LD_PRELOAD": str(preload)}
    )
    with TemporaryDirectory(prefix="bench-vfs-", dir=disk) as here:
        program = [sys.executable, "-I", "-c", APP, mode, str(databases), str(COMMITS)]
        ended = subprocess.run(
            program, cwd=here, env=environment, check=True, capture_output=True, text=True
        )
        if preload is not None and not (Path(here) / "main.db-wal").is_file():
            raise SystemExit(f"no WAL was kept: {sys.executable} does not use libsqlite3.so.0")
    return COMMITS / float(ended.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the ratios, and return 1 where the VFS is slower than stock SQLite."""
    asked = arguments_of("vfs", __doc__, turns=7).parse_args(arguments)
    library, rows = cure_folder() / "joj_wal_preload.so", list[Row]()
    with show_when_interrupted(rows):
        for databases in DATABASES:
            run = partial(commits_a_second, asked.directory, databases=databases)
            peers: Peers = {
                f"stock, {mode.upper()}": (goal, partial(run, mode=mode, preload=None))
                for mode, goal in GOALS.items()
            }
            own = partial(run, mode="wal", preload=library)
            rows += compared(f"Python, {databases} databases, vfs = wal", own, peers, asked.turns)
    print(json.dumps([asdict(row) for row in rows])) if asked.json else show(rows)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
