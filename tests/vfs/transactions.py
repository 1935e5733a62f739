"""A program of numbered transactions, and what is left of its databases.

It commits over one database or several, and says each one that returned. Then each database holds
all of them, and the databases agree.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.hangs import HANG_S
from tests.vfs.programs import python

WRITER = """
    import os, random, sqlite3, sys
    mode = sys.argv[1]
    databases, commits, page_bytes, cache_pages, connections, has_link, has_changes = \
        map(int, sys.argv[2:])
    draw = random.Random(1)
    names = ["main", "b", "c"][:databases]
    acknowledged = os.open("acknowledged", os.O_RDWR | os.O_CREAT)

    def connect():
        db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
        for name in names[1:]:
            db.execute(f"ATTACH '{name}.db' AS {name}")
        for name in names:
            db.execute(f"PRAGMA {name}.page_size = {page_bytes}")
            db.execute(f"PRAGMA {name}.journal_mode = {mode}")
            db.execute(f"PRAGMA {name}.cache_size = {cache_pages}")
        db.execute("PRAGMA wal_autocheckpoint = 30")
        return db

    def change():
        name, what = draw.choice(names), draw.choice(("joj_redo", "VACUUM", "journal_mode"))
        # A transaction over several databases is atomic in the modes with a rollback journal alone.
        modes = ("delete", "truncate", "persist", "wal")[: 4 if databases == 1 else 3]
        values = {"joj_redo": ("off", "on"), "journal_mode": modes}
        if what in values:
            db.execute(f"PRAGMA {name}.{what} = {draw.choice(values[what])}")
        else:
            db.execute(f"VACUUM {name}")

    connected = [connect() for _ in range(connections)]
    db = connected[0]
    db.execute("BEGIN IMMEDIATE")
    for name in names:
        db.execute(f"CREATE TABLE IF NOT EXISTS {name}.t(number INTEGER PRIMARY KEY, x, y)")
        db.execute(f"CREATE TABLE IF NOT EXISTS {name}.last(number, total)")
        db.execute(f"INSERT INTO {name}.last SELECT 0, 0 WHERE NOT EXISTS "
                   f"(SELECT 1 FROM {name}.last)")
    db.execute("COMMIT")
    [number] = db.execute("SELECT number FROM last").fetchone()
    os.pwrite(acknowledged, b"%8d" % number, 0)
    if has_link and not os.path.exists("../link"):
        os.link("b.db", "../link")
    end = number + commits
    while number < end:
        number += 1
        turn = number % connections
        db = connected[turn]
        db.execute("BEGIN IMMEDIATE")
        for name in names:
            db.execute(f"INSERT INTO {name}.t VALUES (?, ?, zeroblob(?))",
                       (number, number, draw.choice((10, 100, 9000))))
            db.execute(f"UPDATE {name}.t SET x = x + 1 WHERE number = ?",
                       (draw.randint(1, number),))
            if number % 7 == 0:
                db.execute(f"DELETE FROM {name}.t WHERE number < ?", (number - 20,))
            if number % 13 == 0:
                db.execute(f"UPDATE {name}.t SET y = randomblob(length(y))")
            db.execute(f"UPDATE {name}.last SET number = ?1, total = total + ?1", (number,))
        db.execute("COMMIT")
        os.pwrite(acknowledged, b"%8d" % number, 0)
        if number % 11 == 0:
            db.close()
            connected[turn] = db = connect()
        if number % 17 == 0 and databases == connections == 1:
            db.execute("VACUUM")
        if has_changes and number % 3 == 0:
            change()
"""

# One line a folder: the VFS, and how many databases. Answers with what each VFS sees: the number of
# the last transaction in each database, or a word.
READER = """
    import json, os, sqlite3, sys

    def look(names, vfs):
        db = None
        try:
            db = sqlite3.connect(f"file:main.db?vfs={vfs}", uri=True, isolation_level=None)
            for name in names[1:]:
                db.execute(f"ATTACH 'file:{name}.db?vfs={vfs}' AS {name}")
            return [look_at(db, name) for name in names]
        except sqlite3.DatabaseError as error:
            return ["refused: " + str(error)]
        finally:
            if db:
                db.close()

    def look_at(db, name):
        if db.execute(f"PRAGMA {name}.integrity_check").fetchall() != [("ok",)]:
            return "damaged"
        if not db.execute(f"SELECT count(*) FROM {name}.sqlite_schema").fetchone()[0]:
            return -1
        number, total = db.execute(f"SELECT number, total FROM {name}.last").fetchone()
        [most] = db.execute(f"SELECT coalesce(max(number), 0) FROM {name}.t").fetchone()
        return number if total == number * (number + 1) // 2 and most == number else "wrong"

    for line in sys.stdin:
        vfs, databases, is_stock_first, folder = json.loads(line)
        os.chdir(folder)
        names = ["main", "b", "c"][:databases]
        order = ["unix"] * is_stock_first + [f"joj_{vfs}", "unix"]
        print(json.dumps([look(names, each) for each in order]), flush=True)
"""


@dataclass(frozen=True)
class Case:
    """A program, and what it does."""

    mode: str = "delete"
    databases: int = 1
    page_bytes: int = 4096
    cache_pages: int = 2000
    commits: int = 40
    connections: int = 1
    # The database b cannot have a mark then: a commit over it is one of SQLite's own way.
    has_link: bool = False
    # Between transactions a database changes its journal mode, leaves the VFS or comes back to it,
    # or is vacuumed.
    has_changes: bool = False
    vfs: str = "redo"


def write(
    libraries: Path, folder: Path, case: Case, *, is_stock: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with its calls logged."""
    folder.mkdir(exist_ok=True)
    preload = f"{libraries}/call_log.so"
    if not is_stock:
        preload += f":{libraries}/joj_{case.vfs}_preload.so"
    command = python(
        preload, WRITER, case.mode, case.databases, case.commits, case.page_bytes,
        case.cache_pages, case.connections, int(case.has_link), int(case.has_changes),
    )  # fmt: skip
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "CALLS_FOLDER": str(folder), **environment},
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip


class Reader:
    """A process that opens databases, with stock SQLite and with the VFS."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def read(self, case: Case, folder: Path, *, is_stock_first: bool) -> list[list[int | str]]:
        """Return what each shows, in that order."""
        assert self.process.stdin
        assert self.process.stdout
        request = [case.vfs, case.databases, is_stock_first, str(folder)]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: list[list[int | str]] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def reader(libraries: Path, vfs: str = "redo") -> Iterator[Reader]:
    """A reader, until the end of the block."""
    command = python(f"{libraries}/joj_{vfs}_preload.so", READER)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Reader(process)


def assert_right(views: list[list[int | str]], acknowledged: int, last: int | None = None) -> None:
    """Raise AssertionError where acknowledged transactions are missing, or one is half there.

    Stock SQLite, where it is the first to look, may refuse instead.
    """
    last = acknowledged + 1 if last is None else last
    assert views[-1] == views[-2], views
    *first, at_end = views[-1]
    assert all(each == at_end for each in first), views
    assert isinstance(at_end, int), views
    assert acknowledged <= at_end <= last, (views, acknowledged)
    for each in views[0] if len(views) == 3 else []:
        if isinstance(each, str):
            assert each.startswith("refused: "), views
        else:
            assert each in (at_end, acknowledged), views


def acknowledgement(folder: Path) -> int:
    """Return the number of the last transaction that returned; -1 before the first one."""
    acknowledged = folder / "acknowledged"
    return int(acknowledged.read_bytes() or -1) if acknowledged.exists() else -1
