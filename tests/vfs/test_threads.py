"""Threads of one process that commit to databases with each VFS, also under ThreadSanitizer."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.vfs.programs import build_preload, python

# Four threads, of which two share a database each, and the one that is attached to it, in the same
# folder or in another one.
WRITERS = """
    import sqlite3, sys, threading
    mode, pages = sys.argv[1:]

    def connect(number):
        first, other = ("0.db", "0b.db") if number % 2 == 0 else ("1.db", "folder/1b.db")
        name = f"file:{first}?cache={pages}"
        db = sqlite3.connect(name, isolation_level=None, timeout=60, uri=True)
        until_free(db, f"ATTACH 'file:{other}?cache={pages}' AS b")
        return db

    def until_free(db, statement, *values):
        # A table that another connection to the same cache has locked has no timeout.
        while True:
            try:
                return db.execute(statement, *values)
            except sqlite3.OperationalError as error:
                if "is locked" not in str(error):
                    raise

    def write(number):
        done = 0
        for opening in range(4):
            db = connect(number)
            for each in range(12):
                ends = each != 5
                until_free(db, "BEGIN IMMEDIATE")
                for table in ("main.t", "b.t"):
                    until_free(db, f"INSERT INTO {table} VALUES (?, zeroblob(?))",
                               (number, 300000 if each == 7 else 100))
                until_free(db, "COMMIT" if ends else "ROLLBACK")
                done += ends
                counts = until_free(
                    db, "SELECT (SELECT count(*) FROM main.t WHERE n = ?1),"
                    "(SELECT count(*) FROM b.t WHERE n = ?1)", (number,)).fetchone()
                assert counts == (done, done), (counts, done)
            db.close()

    for number in (0, 1):
        db = connect(number)
        for name in ("main", "b"):
            db.execute(f"PRAGMA {name}.journal_mode = {mode}")
            db.execute(f"CREATE TABLE {name}.t(n, x)")
        db.close()
    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in threads: each.start()
    for each in threads: each.join()
"""


@pytest.fixture(scope="module")
def preloads(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """A builder of the library of a VFS and kind; it builds each once."""
    return cache(lambda vfs, kind: build_preload(vfs, kind, tmp_path_factory.mktemp("vfs")))


@pytest.mark.parametrize("pages", ["private", "shared"])
@pytest.mark.parametrize(("vfs", "mode"), [("redo", "delete"), ("wal", "wal")])
@pytest.mark.parametrize(
    "kind", ["plain", "threads", pytest.param("sanitized", marks=pytest.mark.full)]
)
def test_threads_commit_without_a_race(
    preloads: Callable[[str, str], str], disk: Path, kind: str, vfs: str, mode: str, pages: str
) -> None:
    library = preloads(f"joj_{vfs}", kind)
    (disk / "folder").mkdir()
    done = subprocess.run(
        python(library, WRITERS, mode, pages), cwd=disk, capture_output=True, text=True,
        check=False, timeout=HANG_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name in ("0", "0b", "1", "folder/1b"):
        with sqlite3.connect(disk / f"{name}.db") as db:
            assert db.execute("SELECT count(*) FROM t").fetchall() == [(88,)]
        db.close()
