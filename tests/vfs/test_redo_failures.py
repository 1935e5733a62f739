"""Tests what is left of databases of joj_redo when a process dies or a call fails."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.vfs.conftest import build_libraries
from tests.vfs.disk_states import read_calls
from tests.vfs.programs import change_source, preload_of, python
from tests.vfs.transactions import Case, acknowledgement, assert_right, reader, write


@pytest.fixture(scope="module")
def libraries(checked_libraries: Path) -> Path:
    """Both VFSes, also with the sanitizers."""
    return checked_libraries


@pytest.mark.parametrize("case", [Case(), Case(databases=3), Case(databases=3, folders=3)], ids=str)
def test_process_may_die_at_any_call(libraries: Path, tmp_path: Path, case: Case) -> None:
    case, folder, draw = replace(case, commits=30), tmp_path / "disk", random.Random(1)
    log = tmp_path / "log"
    assert write(libraries, folder, case, CALLS_LOG=str(log)).returncode == 0
    calls = len(read_calls(log))
    with reader(libraries) as looking:
        for _ in range(20):
            death = str(draw.randrange(1, calls + 1))
            died = write(libraries, folder, case, CALLS_DEATH=death)
            assert died.returncode in (-signal.SIGKILL, 0), died.stderr
            is_stock_first, first = draw.random() < 0.5, draw.choice(range(case.databases))
            views = looking.read(case, folder, is_stock_first=is_stock_first, first=first)
            assert_right(views, acknowledgement(folder))


@pytest.mark.parametrize("folders", [1, 2])
def test_processes_that_die_beside_others_lose_nothing(
    libraries: Path, tmp_path: Path, folders: int
) -> None:
    """Four writers at a time; each transaction is of all databases, in turn."""
    folder, draw = tmp_path / "disk", random.Random(1)
    case = Case(databases=2, folders=folders, commits=15)
    assert write(libraries, folder, case).returncode == 0
    code = """
        import sqlite3, sys
        db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
        db.execute(f"ATTACH '{sys.argv[1]}' AS b")
        while True:
            db.execute("BEGIN IMMEDIATE")
            [number] = db.execute("SELECT number + 1 FROM last").fetchone()
            for name in ("main", "b"):
                db.execute(f"INSERT INTO {name}.t VALUES (?, 1, zeroblob(300))", (number,))
                db.execute(f"UPDATE {name}.last SET number = ?1, total = total + ?1", (number,))
            db.execute("COMMIT")
            print(number, flush=True)
    """
    preload = preload_of(libraries, "call_log", "joj_redo_preload")
    with reader(libraries) as looking:
        for _ in range(4):
            running = [
                subprocess.Popen(
                    python(preload, code, case.paths[1]), cwd=folder, stdout=subprocess.PIPE,
                    text=True, env={**os.environ, "CALLS_FOLDER": str(folder),
                         "CALLS_DEATH": str(draw.randrange(20, 200))},
                )
                for _ in range(4)
            ]  # fmt: skip
            numbers = [process.communicate(timeout=HANG_S)[0].split() for process in running]
            assert {process.returncode for process in running} == {-signal.SIGKILL}
            acknowledged = [int(each) for printed in numbers for each in printed]
            assert len(set(acknowledged)) == len(acknowledged)
            views = looking.read(case, folder, is_stock_first=False)
            assert_right(views, max(acknowledged), last=max(acknowledged) + 4)


@pytest.mark.parametrize("kind", ["w", "s", "t"])
@pytest.mark.parametrize("once", ["", ":1"], ids=["from then on", "once"])
@pytest.mark.parametrize("folders", [1, 2])
def test_call_that_fails_leaves_nothing_half(
    libraries: Path, tmp_path: Path, kind: str, once: str, folders: int
) -> None:
    case, draw = Case(databases=2, folders=folders, commits=25), random.Random(1)
    failed = 0
    with reader(libraries) as looking:
        for number in range(12):
            folder = tmp_path / str(number)
            error = errno.EIO if kind != "w" else draw.choice((errno.ENOSPC, errno.EIO))
            fault = f"{kind}:{draw.randrange(1, 60)}:{error}{once}"
            ended = write(libraries, folder, case, CALLS_FAULT=fault)
            failed += ended.returncode != 0
            if ended.returncode:
                assert "sqlite3." in ended.stderr, ended.stderr
            views = looking.read(case, folder, is_stock_first=False)
            assert_right(views, acknowledgement(folder))
    assert failed > 0 or kind == "t"


# Opens the databases, changes both and closes them; each time the next call of a kind fails, until
# none of them does. A row has its number in both, or in none.
FAILING = """
    import ctypes, os, sqlite3, sys
    fault, once, path = sys.argv[1:4]
    calls = ctypes.c_int.in_dll(ctypes.CDLL(None), "calls_of_kind")

    def connect():
        db = sqlite3.connect("main.db", isolation_level=None)
        db.execute(f"ATTACH '{path}' AS b")
        return db

    def insert(db, number, length_bytes):
        db.execute("BEGIN")
        for name in ("main", "b"):
            db.execute(f"INSERT INTO {name}.t VALUES (?, zeroblob(?))", (number, length_bytes))
        db.execute("COMMIT")

    def look():
        db = connect()
        numbers = []
        for name in ("main", "b"):
            assert db.execute(f"PRAGMA {name}.integrity_check").fetchall() == [("ok",)]
            numbers.append([number for number, in db.execute(f"SELECT number FROM {name}.t")])
        db.close()
        assert numbers[0] == numbers[1], numbers
        return numbers[0]

    def change(db, what, number):
        if what == "vacuum":
            db.execute("VACUUM")
            db.execute("VACUUM b")
        else:
            # A record that is longer than the log, and one that is short.
            insert(db, number, 90000 if what == "large" else 100)

    db = connect()
    for name in ("main", "b"):
        db.execute(f"CREATE TABLE {name}.t(number, x)")
    db.close()
    failures = number = 0
    for what in sys.argv[4:]:
        if what == "linked":
            os.link(path, "../link")
        nth, was_reached = 0, True
        while was_reached:
            nth, number, before, is_done, db = nth + 1, number + 1, look(), False, None
            if what == "new" and os.path.exists("joj-redo.log"):
                os.unlink("joj-redo.log")
            calls.value = 0
            os.environ["CALLS_FAULT"] = f"{fault[0]}:{nth}:{fault[1:]}{once}"
            try:
                db = connect()
                change(db, what, number)
                is_done = True
            except sqlite3.Error:
                failures += 1
            if db:
                db.close()
            del os.environ["CALLS_FAULT"]
            was_reached = calls.value >= nth
            rows = [number] if what != "vacuum" else []
            after = look()
            assert after in ([before + rows] if is_done else [before, before + rows]), (
                what, nth, number, is_done, before[-2:], after[-2:])
        print(what, nth)
    print(failures)
"""


@pytest.mark.full
@pytest.mark.parametrize("once", ["", ":1"], ids=["from then on", "once"])
@pytest.mark.parametrize(
    "fault",
    [f"w{errno.ENOSPC}", f"w{errno.EIO}", f"s{errno.EIO}", f"t{errno.EIO}", f"r{errno.EIO}"],
)
@pytest.mark.parametrize("path", ["b.db", "1/b.db"])
def test_each_call_fails_in_its_turn(
    libraries: Path, tmp_path: Path, fault: str, once: str, path: str
) -> None:
    """SQLite's diskfull.test, whose failures are of the VFS below, and no call of the log's."""
    folder = tmp_path / "disk"
    (folder / path).parent.mkdir(parents=True)
    preload = preload_of(libraries, "call_log", "joj_redo_preload")
    done = subprocess.run(
        python(preload, FAILING, fault, once, path, "new", "small", "large", "vacuum", "linked"),
        cwd=folder, env={**os.environ, "CALLS_FOLDER": str(folder)}, capture_output=True,
        text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.splitlines()[-1]) > 0 or fault[0] == "t"
    print(done.stdout)


def test_read_that_fails_is_an_error_of_the_program(libraries: Path, tmp_path: Path) -> None:
    """No commit is made in another way because something could not be read."""
    case = Case(databases=2, commits=5)
    with reader(libraries) as looking:
        for number in range(1, 60, 4):
            folder = tmp_path / str(number)
            ended = write(libraries, folder, case, CALLS_FAULT=f"r:{number}:{errno.EIO}:1")
            assert "sqlite3." in ended.stderr, (number, ended.stderr)
            views = looking.read(case, folder, is_stock_first=False)
            assert_right(views, acknowledgement(folder))


# Opens a database whose writer died as a VFS above joj_redo does: SQLite's multiplexor closes no
# file that could not be opened (test_multiplex.c). Each read fails in its turn, once.
OPENING = """
    import _sqlite3, ctypes, itertools, os, sqlite3

    class Vfs(ctypes.Structure):
        _fields_ = [
            ("version", ctypes.c_int), ("file_bytes", ctypes.c_int), ("path_bytes", ctypes.c_int),
            ("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("data", ctypes.c_void_p),
            ("open", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
                                      ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)),
        ]

    sqlite3.connect(":memory:").close()
    find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    find.restype = ctypes.POINTER(Vfs)
    vfs = find(b"joj_redo")
    file = ctypes.create_string_buffer(vfs.contents.file_bytes)
    methods = ctypes.c_void_p.from_buffer(file)
    calls = ctypes.c_int.in_dll(ctypes.CDLL(None), "calls_of_kind")
    path = os.path.abspath("main.db").encode() + bytes(4)
    before = os.listdir("/proc/self/fd")
    for nth in itertools.count(1):
        calls.value = 0
        os.environ["CALLS_FAULT"] = f"r:{nth}:5:1"
        # SQLITE_OPEN_MAIN_DB and SQLITE_OPEN_READWRITE.
        result = vfs.contents.open(vfs, path, file, 0x102, None)
        if calls.value < nth:
            break
        assert result, nth
        assert methods.value is None, nth
        assert os.listdir("/proc/self/fd") == before, nth
    assert result == 0, result
    print(nth)
"""


def test_database_that_cannot_be_opened_is_closed(libraries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    assert write(libraries, folder, Case(), CALLS_DEATH="60").returncode == -signal.SIGKILL
    preload = preload_of(libraries, "call_log", "joj_redo_preload")
    done = subprocess.run(
        python(preload, OPENING), cwd=folder, env={**os.environ, "CALLS_FOLDER": str(folder)},
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 10


def test_dead_committer_is_looked_for(tmp_path: Path) -> None:
    """The one fault that no power cut shows: a reader beside it sees half a transaction."""
    before = "(level == SQLITE_LOCK_SHARED && !log_is_busy(file->log))"
    source = change_source(tmp_path, "redo_file.c", before, "level == SQLITE_LOCK_SHARED")
    libraries = build_libraries(source, tmp_path / "build")
    folder = tmp_path / "disk"
    with pytest.raises(AssertionError):
        read_beside_deaths(libraries, folder)


def read_beside_deaths(libraries: Path, folder: Path) -> None:
    """A reader that has the databases open while writers die in their commits."""
    case = Case(databases=3, commits=3)
    assert write(libraries, folder, case).returncode == 0
    code = """
        import sqlite3, sys
        db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
        for name in ("b", "c"):
            db.execute(f"ATTACH '{name}.db' AS {name}")
        # To be a member of the log: else it would recover as the first one.
        for name in ("main", "b", "c"):
            db.execute(f"CREATE TABLE {name}.own(x)")
        print("member", flush=True)
        for _ in sys.stdin:
            print(*db.execute("SELECT (SELECT number FROM main.last), (SELECT number FROM b.last),"
                              "(SELECT number FROM c.last)").fetchone(), flush=True)
    """
    preload = preload_of(libraries, "joj_redo_preload")
    with subprocess.Popen(python(preload, code), cwd=folder, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as looking:  # fmt: skip
        assert looking.stdin
        assert looking.stdout
        assert looking.stdout.readline() == "member\n"
        for death in range(24, 72, 3):
            write(libraries, folder, case, CALLS_DEATH=str(death))
            looking.stdin.write("\n")
            looking.stdin.flush()
            numbers = {int(number) for number in looking.stdout.readline().split()}
            looking.stdin.flush()
            if len(numbers) != 1:
                looking.kill()
            assert len(numbers) == 1, numbers


def test_reader_beside_deaths_sees_whole_transactions(libraries: Path, tmp_path: Path) -> None:
    read_beside_deaths(libraries, tmp_path / "disk")
