"""Commits of an unchanged Python program in new files, with a VFS of vfs/ and with stock SQLite.

The same program runs under LD_PRELOAD, or without it in several journal modes, over one database
and over three that it attaches. Commits a second are real time; commits a second of a processor
count what the program and its system calls take.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.comparison import Peers, Row, arguments_of, compare, show, show_when_interrupted
from jojlab.foundation.places import cure_folder

COMMITS = 200
DATABASES = (1, 3)
# The modes of stock SQLite, and the ratio to reach: where the disk decides, one of 1 is the least.
GOALS = {"wal": 1.0, "truncate": 1.0, "delete": 1.0}
# A commit may take twice the processor's time of one in WAL mode.
PROCESSOR_GOALS = {"wal": 0.5}
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
begin, begin_cpu = time.perf_counter(), time.process_time()
for _ in range(commits):
    db.execute("BEGIN")
    for name in names:
        db.execute(f"INSERT INTO {name}.t VALUES (zeroblob(100))")
    db.execute("COMMIT")
print(time.perf_counter() - begin, time.process_time() - begin_cpu)
"""


@dataclass(frozen=True)
class Vfs:
    """A VFS of vfs/: the journal mode that it works with, and the file that it leaves."""

    name: str
    mode: str
    witness: str

    @property
    def library(self) -> Path:
        """Return what is put before SQLite."""
        return cure_folder() / f"joj_{self.name}_preload.so"


VFSES = (Vfs("wal", "wal", "main.db-wal"), Vfs("redo", "truncate", "joj-redo.log"))


def commits_a_second(
    disk: Path, mode: str, databases: int, vfs: Vfs | None, *, uses_processor_time: bool
) -> float:
    """Return how many commits the program made in a folder of the disk, in real time or in that of
    a processor.
    """
    environment = dict(os.environ)
    if vfs is not None:
        environment["LD_PRELOAD"] = str(vfs.library)
    with TemporaryDirectory(prefix="bench-vfs-", dir=disk) as here:
        program = [sys.executable, "-I", "-c", APP, mode, str(databases), str(COMMITS)]
        ended = subprocess.run(
            program, cwd=here, env=environment, check=True, capture_output=True, text=True
        )
        if vfs is not None and not (Path(here) / vfs.witness).is_file():
            raise SystemExit(f"no {vfs.witness}: {sys.executable} does not use libsqlite3.so.0")
    real_s, processor_s = map(float, ended.stdout.split())
    return COMMITS / (processor_s if uses_processor_time else real_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the ratios, and return 1 where a goal is missed."""
    asked = arguments_of("vfs", __doc__, turns=7).parse_args(arguments)
    rows = list[Row]()
    with show_when_interrupted(rows):
        for vfs, databases, uses_processor_time in product(VFSES, DATABASES, (False, True)):
            run = partial(
                commits_a_second,
                asked.directory,
                databases=databases,
                uses_processor_time=uses_processor_time,
            )
            peers: Peers = {
                f"stock, {mode.upper()}": (goal, partial(run, mode=mode, vfs=None))
                for mode, goal in (PROCESSOR_GOALS if uses_processor_time else GOALS).items()
            }
            own = partial(run, mode=vfs.mode, vfs=vfs)
            time = "processor" if uses_processor_time else "real time"
            subject = f"{databases} databases, vfs = {vfs.name}, {time}"
            rows += compare(subject, own, peers, asked.turns)
    print(json.dumps([asdict(row) for row in rows])) if asked.json else show(rows)
    return 0 if all(row.is_met for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
