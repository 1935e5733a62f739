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
from tests.vfs.programs import preload_of, python

WRITER = """
    import os, random, sqlite3, sys
    mode, paths = sys.argv[1], sys.argv[2].split(",")
    commits, page_bytes, cache_pages, connections, has_link, has_changes = map(int, sys.argv[3:])
    draw = random.Random(1)
    databases, names = len(paths), ["main", "b", "c"][: len(paths)]
    acknowledged = os.open("acknowledged", os.O_RDWR | os.O_CREAT)

    def connect():
        db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
        for name, path in zip(names[1:], paths[1:]):
            db.execute(f"ATTACH '{path}' AS {name}")
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

# One line a folder: the VFS, the databases, and which of them is opened first. Answers with what
# each VFS sees: the number of the last transaction in each database, or a word.
READER = """
    import json, os, sqlite3, sys

    def look(paths, first, vfs):
        db, names = None, ["main", "b", "c"][: len(paths)]
        try:
            sqlite3.connect(f"file:{paths[first]}?vfs={vfs}", uri=True).close()
            db = sqlite3.connect(f"file:main.db?vfs={vfs}", uri=True, isolation_level=None)
            for name, path in zip(names[1:], paths[1:]):
                db.execute(f"ATTACH 'file:{path}?vfs={vfs}' AS {name}")
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
        vfs, paths, first, is_stock_first, folder = json.loads(line)
        os.chdir(folder)
        order = ["unix"] * is_stock_first + [f"joj_{vfs}", "unix"]
        print(json.dumps([look(paths, first, each) for each in order]), flush=True)
"""


@dataclass(frozen=True)
class Case:
    """A program, and what it does."""

    mode: str = "delete"
    databases: int = 1
    # The databases are in as many folders, each with a log.
    folders: int = 1
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

    @property
    def paths(self) -> list[str]:
        """The databases, of which the first lies in the folder itself."""
        names = ("main", "b", "c")[: self.databases]
        places = [number % self.folders for number in range(self.databases)]
        return [
            f"{place}/{name}.db" if place else f"{name}.db"
            for place, name in zip(places, names, strict=True)
        ]

    def make_folders(self, folder: Path) -> None:
        """Make what is not there of the folders."""
        for path in self.paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)


def write(
    libraries: Path, folder: Path, case: Case, *, is_stock: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with its calls logged."""
    case.make_folders(folder)
    names = ["call_log"] if is_stock else ["call_log", f"joj_{case.vfs}_preload"]
    preload = preload_of(libraries, *names)
    command = python(
        preload, WRITER, case.mode, ",".join(case.paths), case.commits, case.page_bytes,
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

    def read(
        self, case: Case, folder: Path, *, is_stock_first: bool, first: int = 0
    ) -> list[list[int | str]]:
        """Return what each shows, in that order, when it has opened the database `first`."""
        assert self.process.stdin
        assert self.process.stdout
        request = [case.vfs, case.paths, first, is_stock_first, str(folder)]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: list[list[int | str]] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def reader(libraries: Path, vfs: str = "redo") -> Iterator[Reader]:
    """A reader, until the end of the block."""
    command = python(preload_of(libraries, f"joj_{vfs}_preload"), READER)
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
