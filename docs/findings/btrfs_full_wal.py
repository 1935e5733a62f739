"""Fills a filesystem while a program has a SQLite database open in WAL, and lets it write on.

SQLite says "database or disk is full" of each transaction. On Btrfs the kernel kills the program:
SQLite writes its index of the WAL through a mapping of main.db-shm, and a changed page of it needs
new room. Exits with 1 where the program is killed.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from loop_disk import folder, new_filesystem, run, verdict

ROWS, UPDATES, SMALLEST_BYTES = 300, 2000, 4096
# By words: the filesystem, whether its folder writes in place, and two PRAGMAs.
TRIALS = {
    "ext4, WAL": ("ext4", False, "wal", "normal"),
    "xfs, WAL": ("xfs", False, "wal", "normal"),
    "btrfs, WAL": ("btrfs", False, "wal", "normal"),
    "btrfs, WAL in a folder with chattr +C": ("btrfs", True, "wal", "normal"),
    "btrfs, WAL with locking_mode = EXCLUSIVE": ("btrfs", False, "wal", "exclusive"),
    "btrfs, TRUNCATE": ("btrfs", False, "truncate", "normal"),
}


def fill(path: Path) -> None:
    """Take all room that there is."""
    with path.open("wb") as file:
        length, step = 0, 64 << 20
        while step >= SMALLEST_BYTES:
            try:
                os.posix_fallocate(file.fileno(), length, step)
                length += step
            except OSError:
                step //= 2
    os.sync()


def write(place: str, journal_mode: str, locking_mode: str) -> None:
    """Open a database, fill the filesystem, and go on writing until the end."""
    database = sqlite3.connect(f"{place}/main.db", isolation_level=None)
    database.execute(f"PRAGMA locking_mode = {locking_mode}")
    database.execute(f"PRAGMA journal_mode = {journal_mode}")
    database.execute("CREATE TABLE t (number INTEGER PRIMARY KEY, text)")
    for number in range(ROWS):
        database.execute("INSERT INTO t VALUES (?, ?)", (number, "a" * 500))
    os.sync()
    fill(Path(place, "filler"))
    errors = set()
    for _ in range(UPDATES):
        row = random.randrange(ROWS)
        try:
            database.execute("UPDATE t SET text = ? WHERE number = ?", ("b" * 500, row))
        except sqlite3.Error as error:
            errors.add(str(error))
    database.close()
    print(", ".join(sorted(errors)) or "no error")


def end_of(filesystem: str, in_place: bool, *modes: str) -> str:
    """Return how the program ends, in words."""
    with folder() as work, new_filesystem(work / "image", filesystem) as (_, at):
        place = at / "data"
        place.mkdir()
        if in_place:
            run("chattr", "+C", place)
        done = subprocess.run(
            [sys.executable, "-B", __file__, place, *modes],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode < 0:
        return f"killed by {signal.Signals(-done.returncode).name}"
    return f"exit code {done.returncode}: {(done.stdout or done.stderr).strip()}"


def main() -> None:
    """Try each filesystem and setting, and give the verdict of Btrfs in WAL."""
    ends = {words: end_of(*trial) for words, trial in TRIALS.items()}
    for words, end in ends.items():
        print(f"{words}: {end}")
    found = f"SQLite {sqlite3.sqlite_version} in WAL on a full Btrfs: {ends['btrfs, WAL']}"
    verdict(ends["btrfs, WAL"].startswith("killed"), found)


if len(sys.argv) > 1:
    write(*sys.argv[1:])
else:
    main()
