"""The VFS that commits by one write and one flush, in programs that were not changed.

Each test runs Python's own SQLite in a process with LD_PRELOAD, or without it as the stock one.
"""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hangs import HANG_S
from tests.vfs.programs import (
    PLAYER,
    SOURCE,
    answers,
    build,
    build_preload,
    leave,
    play,
    python,
)  # fmt: skip

LOG_BYTES = 4 << 20
MARK = b"joj1"
ATTACH = [f"ATTACH '{name}.db' AS {name}" for name in ("b", "c")]


@pytest.fixture(
    scope="session", params=["plain", pytest.param("sanitized", marks=pytest.mark.full)]
)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, built from this checkout."""
    return build_preload("joj_redo", request.param, tmp_path_factory.mktemp("vfs"))


def has_mark(path: Path) -> bool:
    """Return whether stock SQLite refuses the database for its mark."""
    with path.open("rb") as file:
        header = file.read(100)
    return header[18:20] == b"\3\3" and header[88:92] == MARK


def play_and_die(library: str, disk: Path, statements: Sequence[str]) -> None:
    """Play the statements in a process that dies with its databases open."""
    die = "    import os\n    os.kill(os.getpid(), 9)\n"
    died = subprocess.run(
        python(library, PLAYER + die), input="\n".join(statements), cwd=disk,
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr


def insert(count: int, databases: Sequence[str] = ("main",)) -> list[str]:
    """Return transactions that each insert a row into every database."""
    rows = [f"INSERT INTO {name}.t VALUES (zeroblob(100))" for name in databases]
    return ["BEGIN", *rows, "COMMIT"] * count


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist"])
@pytest.mark.parametrize("names", [("main",), ("main", "b", "c")])
def test_commit_is_one_write_and_one_flush(
    library: str, disk: Path, mode: str, names: tuple[str, ...]
) -> None:
    begin = [
        *ATTACH[: len(names) - 1],
        *(f"PRAGMA {name}.journal_mode = {mode}" for name in names),
        *(f"CREATE TABLE {name}.t(x)" for name in names), *insert(3, names),
    ]  # fmt: skip
    counts = []
    for commits in (10, 30):
        folder, log = disk / str(commits), disk / f"{commits}.log"
        folder.mkdir()
        calls = "pwrite64,fdatasync,fsync,ftruncate,unlink"
        trace = ["strace", "-f", "-y", "-o", str(log), "-e", calls, *python(library, PLAYER)]
        subprocess.run(
            trace, input="\n".join([*begin, *insert(commits, names)]), cwd=folder, check=True,
            stdout=subprocess.DEVNULL, text=True, timeout=HANG_S,
        )  # fmt: skip
        text = log.read_text()
        of_log = re.findall(r"(\w+)\(\d+<\S*joj-redo\.log>", text)
        syncs = len(re.findall(r"(?:fdatasync|fsync)\(", text))
        counts.append((of_log.count("pwrite64"), of_log.count("fdatasync"), syncs))
        assert "-journal" not in text
    assert [more - less for less, more in zip(*counts, strict=True)] == [20, 20, 20]


def test_closed_database_is_one_of_any_sqlite(library: str, disk: Path) -> None:
    play(library, disk, [*ATTACH, "CREATE TABLE t(x)", "CREATE TABLE b.t(x)", *insert(5)])
    assert not has_mark(disk / "a.db")
    assert not has_mark(disk / "b.db")
    assert (disk / "joj-redo.log").stat().st_size == LOG_BYTES
    assert play(None, disk, ["SELECT count(*) FROM t", "PRAGMA integrity_check"]) == [
        "[(5,)]", "[('ok',)]",
    ]  # fmt: skip
    play(None, disk, insert(1))
    assert play(library, disk, ["SELECT count(*) FROM t"]) == ["[(6,)]"]


def test_stock_sqlite_refuses_what_a_death_left_until_it_is_left(library: str, disk: Path) -> None:
    play_and_die(library, disk, [*ATTACH, "CREATE TABLE t(x)", "CREATE TABLE b.t(x)",
                                 *insert(5, ("main", "b"))])  # fmt: skip
    assert has_mark(disk / "a.db")
    assert answers(None, disk, ["SELECT count(*) FROM t"]) == ["file is not a database"]
    said = leave(disk / "a.db", disk / "b.db")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "".join(
        f"{disk}/{name}.db is open to any SQLite\n" for name in ("a", "b")
    )
    assert play(None, disk, [*ATTACH, "SELECT count(*) FROM t", "SELECT count(*) FROM b.t"])[2:] \
        == ["[(5,)]", "[(5,)]"]  # fmt: skip


def test_pragma_takes_the_mark_away_and_sets_it_again(library: str, disk: Path) -> None:
    play(library, disk, ["CREATE TABLE t(x)"])
    statements = [*insert(1), "PRAGMA joj_redo", "PRAGMA joj_redo = off", *insert(2)]
    play_and_die(library, disk, statements)
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(3,)]"]
    play_and_die(library, disk, [*statements, "PRAGMA joj_redo = on", *insert(1)])
    assert has_mark(disk / "a.db")
    assert answers(library, disk, ["BEGIN", "INSERT INTO t VALUES (1)", "PRAGMA joj_redo = off",
                                   "ROLLBACK", "PRAGMA joj_redo = maybe", "PRAGMA joj_redo"])[2:] \
        == ["joj_redo changes between transactions only", "[]", "joj_redo is on or off",
            "[('on',)]"]  # fmt: skip
    assert play(library, disk, ["SELECT count(*) FROM t"]) == ["[(7,)]"]


def test_database_of_many_terabytes_keeps_the_way_of_sqlite(library: str, disk: Path) -> None:
    play(None, disk, ["CREATE TABLE t(x)"])
    with (disk / "a.db").open("r+b") as file:
        file.truncate(9 << 40)
    play_and_die(library, disk, insert(2))
    assert not has_mark(disk / "a.db")
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(2,)]"]


def test_no_image_of_a_header_outlives_a_clean_close(library: str, disk: Path) -> None:
    """Nothing of a database that was closed goes over what has its name, or its inode, later."""
    play(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    other = b"no database, but a file with the same name and inode" * 100
    with (disk / "a.db").open("r+b") as file:
        file.truncate(0)
        file.write(other)
    (disk / "b.db").touch()
    answers(library, disk, ["SELECT 1 FROM t", *ATTACH, "CREATE TABLE b.t(x)"])
    assert (disk / "a.db").read_bytes() == other


@pytest.mark.parametrize("new_inode", [True, False])
def test_a_file_that_took_the_name_of_a_dead_one_is_not_written_to(
    library: str, disk: Path, new_inode: bool
) -> None:
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    (disk / "a.db").unlink()
    if new_inode:
        (disk / "keeper").touch()  # may have got the number of the inode
    other = b"no database, but a file with the same name" * 100
    (disk / "a.db").write_bytes(other)
    said = leave(disk / "a.db")
    assert "is no database, or is encrypted" in said.stderr
    assert "commits in joj-redo.log" in said.stderr
    assert (disk / "a.db").read_bytes() == other


def test_renamed_database_gets_its_commits(library: str, disk: Path, tmp_path: Path) -> None:
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    (disk / "a.db").rename(disk / "z.db")
    # As if no block of the last commits had come to the disk.
    with (disk / "z.db").open("r+b") as file:
        file.seek(4096)
        file.write(bytes(4096))
    said = leave(disk / "z.db")
    assert said.returncode == 0, said.stderr
    (disk / "z.db").rename(disk / "a.db")
    assert play(None, disk, ["SELECT count(*) FROM t", "PRAGMA integrity_check"]) == [
        "[(3,)]", "[('ok',)]",
    ]  # fmt: skip


def test_database_without_its_log_is_refused(library: str, disk: Path, tmp_path: Path) -> None:
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    shutil.copy(disk / "a.db", tmp_path / "a.db")
    refused = ["SELECT count(*) FROM t"]
    for _ in range(2):  # the second time beside a log of the folder's own
        with pytest.raises(AssertionError, match="unable to open database file"):
            answers(library, tmp_path, refused)
        assert "put it back" in leave(tmp_path / "a.db").stderr
        (tmp_path / "a.db").rename(tmp_path / "moved")
        play(library, tmp_path, ["CREATE TABLE t(x)", *insert(1)])
        (tmp_path / "moved").replace(tmp_path / "a.db")
    # A copy of a database that is open, in its own folder.
    shutil.copy(disk / "a.db", disk / "b.db")
    program = "db = sqlite3.connect('a.db'); db.execute('SELECT 1 FROM t'); db.execute(\"ATTACH " \
              "'b.db' AS b\")"  # fmt: skip
    said = subprocess.run(
        python(library, f"import sqlite3\n{program}"), cwd=disk, capture_output=True, text=True,
        check=False, timeout=HANG_S,
    )  # fmt: skip
    assert said.returncode == 1
    assert play(library, disk, refused) == ["[(3,)]"]


def test_commits_of_a_missing_database_are_dropped_loudly(
    library: str, disk: Path, tmp_path: Path
) -> None:
    play_and_die(library, disk, [*ATTACH, "CREATE TABLE t(x)", "CREATE TABLE b.t(x)",
                                 *insert(3, ("main", "b"))])  # fmt: skip
    (disk / "b.db").rename(tmp_path / "b.db")
    said = leave(disk / "a.db")
    assert said.returncode == 0
    assert "b.db has commits in joj-redo.log" in said.stderr
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(3,)]"]
    # It comes back, and lacks them: it is refused.
    (tmp_path / "b.db").rename(disk / "b.db")
    assert answers(library, disk, ["ATTACH 'b.db' AS b"]) == ["unable to open database: b.db"]
    assert leave(disk / "b.db").returncode == 1


def fill_lost_ids(log: Path) -> None:
    """Fill the list of lost ids in the newer header of a log (vfs/redo_format.h)."""
    with log.open("r+b") as file:
        slots = [struct.unpack("<505Q", file.read(4096)[:4040]) for _ in range(2)]
        newer = max((0, 1), key=lambda slot: slots[slot][2])
        words = [*slots[newer][:3], 372, *range(1, 373), *slots[newer][376:504]]
        checksum = 0x9E3779B97F4A7C15
        for word in words:
            checksum = (checksum ^ word) * 0xFF51AFD7ED558CCD % (1 << 64)
            checksum ^= checksum >> 32
        file.seek(newer * 4096)
        file.write(struct.pack("<505Q", *words, checksum))


def test_a_full_list_of_lost_ids_forgets_the_oldest(
    library: str, disk: Path, tmp_path: Path
) -> None:
    play_and_die(library, disk, [*ATTACH, "CREATE TABLE t(x)", "CREATE TABLE b.t(x)",
                                 *insert(3, ("main", "b"))])  # fmt: skip
    fill_lost_ids(disk / "joj-redo.log")
    for name in ("a.db", "b.db"):
        shutil.copy(disk / name, tmp_path / name)
    assert leave(disk / "a.db", disk / "b.db").returncode == 0
    # Both copies are of before the recovery.
    for name in ("a.db", "b.db"):
        (disk / name).unlink()
        shutil.copy(tmp_path / name, disk / name)
        assert leave(disk / name).returncode == 1
        assert has_mark(disk / name)


@pytest.mark.parametrize("mode", ["wal", "memory", "off"])
def test_other_journal_modes_pass_through(library: str, disk: Path, mode: str) -> None:
    change = f"PRAGMA journal_mode = {mode}"
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(2), change, *insert(3)])
    assert not has_mark(disk / "a.db")
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(5,)]"]
    back = [change, *insert(1), "PRAGMA journal_mode = delete", *insert(2)]
    play_and_die(library, disk, back)
    assert has_mark(disk / "a.db")
    assert play(library, disk, ["SELECT count(*) FROM t", "PRAGMA integrity_check"]) == [
        "[(8,)]", "[('ok',)]",
    ]  # fmt: skip


def test_the_redo_vfs_makes_no_file_in_wal_mode(library: str, disk: Path) -> None:
    play(None, disk, ["PRAGMA journal_mode = wal", "CREATE TABLE t(x)"])
    play(library, disk, [*insert(3), "SELECT * FROM t"])
    assert [path.name for path in disk.iterdir()] == ["a.db"]


def test_encrypted_database_is_as_without_the_vfs(library: str, disk: Path) -> None:
    """A file whose first bytes are no header, as SQLCipher's: SQLite sees all of it unchanged."""
    noise = bytes(range(1, 201)) * 41
    (disk / "a.db").write_bytes(noise)
    assert answers(library, disk, ["SELECT * FROM t"]) == answers(None, disk, ["SELECT * FROM t"])
    assert (disk / "a.db").read_bytes() == noise
    assert [path.name for path in disk.iterdir()] == ["a.db"]


def test_hard_link_and_readonly_folder_commit_as_sqlite_does(library: str, disk: Path) -> None:
    play(None, disk, ["CREATE TABLE t(x)"])
    (disk / "elsewhere").mkdir()
    (disk / "elsewhere/a.db").hardlink_to(disk / "a.db")
    play_and_die(library, disk, insert(3))
    assert not has_mark(disk / "a.db")
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(3,)]"]


def test_a_database_without_the_vfs_may_take_part(library: str, disk: Path) -> None:
    off = [*ATTACH, "PRAGMA b.joj_redo = off", "CREATE TABLE t(x)", "CREATE TABLE b.t(x)"]
    play_and_die(library, disk, [*off, *insert(1), *insert(3, ("main", "b"))])
    assert play(None, disk, [*ATTACH, "SELECT count(*) FROM t", "SELECT count(*) FROM b.t"])[2:] \
        == ["[(4,)]", "[(3,)]"]  # fmt: skip
    assert not list(disk.glob("*-mj*"))


def test_read_only_connection_sees_commits_of_others(library: str, disk: Path) -> None:
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    read = "import sqlite3\ndb = sqlite3.connect('file:a.db?mode=ro', uri=True)\n" \
           "print(db.execute('SELECT count(*) FROM t').fetchall())"  # fmt: skip
    said = subprocess.run(python(library, read), cwd=disk, capture_output=True, text=True,
                          check=True, timeout=HANG_S)  # fmt: skip
    assert said.stdout == "[(3,)]\n"


# Changes a row of each database with less and less memory. With exclusive locks SQLite plays the
# journal that a failure has left when it reads next, and not at once.
STARVED = """
    import _sqlite3
    import ctypes
    import sqlite3
    import sys

    locking_mode, databases = sys.argv[1], ["main", "b", "c"][: int(sys.argv[2])]
    sqlite = ctypes.CDLL(_sqlite3.__file__)
    heap_limit, used_bytes = sqlite.sqlite3_hard_heap_limit64, sqlite.sqlite3_memory_used
    heap_limit.argtypes = [ctypes.c_int64]
    used_bytes.restype = ctypes.c_int64
    sqlite3.connect(":memory:").close()
    used_before = used_bytes()
    db = sqlite3.connect("a.db", isolation_level=None)
    for name in databases:
        if name != "main":
            db.execute(f"ATTACH '{name}.db' AS {name}")
        db.execute(f"PRAGMA {name}.page_size = 1024")
        db.execute(f"PRAGMA {name}.locking_mode = {locking_mode}")
        db.execute(f"CREATE TABLE {name}.t(x)")
        rows = ((f"row {number}" * 99,) for number in range(40))
        db.executemany(f"INSERT INTO {name}.t VALUES (?)", rows)
    failures = 0
    for heap_bytes in range(300 * len(databases) + 300 << 10, 40 << 10, -8 << 10):
        before = db.execute("SELECT x FROM t").fetchall()
        heap_limit(heap_bytes)
        try:
            db.execute("BEGIN")
            for name in databases:
                db.execute(f"UPDATE {name}.t SET x = x || 'y' WHERE rowid = 20")
            db.execute("COMMIT")
            before[19] = (before[19][0] + "y",)
        except MemoryError:
            failures += 1
        heap_limit(0)
        if db.in_transaction:
            db.execute("ROLLBACK")
        for name in databases:
            sound = db.execute(f"PRAGMA {name}.integrity_check").fetchall()
            assert sound == [("ok",)], (heap_bytes, name, sound)
            assert db.execute(f"SELECT x FROM {name}.t").fetchall() == before, (heap_bytes, name)
    db.close()
    assert used_bytes() == used_before, used_bytes() - used_before
    print(failures)
"""


@pytest.mark.parametrize("databases", [1, 3])
@pytest.mark.parametrize("locking_mode", ["normal", "exclusive"])
def test_transaction_without_memory_is_rolled_back(
    library: str, disk: Path, locking_mode: str, databases: int
) -> None:
    starved = python(library, STARVED, locking_mode, databases)
    done = subprocess.run(
        starved, cwd=disk, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 5


@pytest.mark.parametrize("page_bytes", [512, 4096, 65536])
@pytest.mark.parametrize("end", ["ROLLBACK", "ROLLBACK TO s", "COMMIT"])
def test_pages_beyond_the_end_go_again(
    library: str, disk: Path, tmp_path: Path, page_bytes: int, end: str
) -> None:
    """A cache of few pages is written to the file before the transaction ends."""
    rows = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 900) "
    look = ["SELECT count(*), sum(length(x)) FROM t", "PRAGMA page_count", "PRAGMA integrity_check"]
    program = [
        f"PRAGMA page_size = {page_bytes}", "PRAGMA cache_size = 5", "PRAGMA mmap_size = 1000000",
        "PRAGMA auto_vacuum = full", "CREATE TABLE t(x)", *insert(24), *look,
        "BEGIN", "INSERT INTO t VALUES (zeroblob(200))", "SAVEPOINT s",
        f"INSERT INTO t {rows} SELECT zeroblob(700) FROM c", "SELECT sum(length(x)) FROM t",
        "DELETE FROM t WHERE rowid > 30", end, "COMMIT", *look, *insert(3), *look,
        "DELETE FROM t WHERE rowid > 5", *look, "VACUUM", *look,
    ]  # fmt: skip
    assert answers(library, disk, program) == answers(None, tmp_path, program)
    assert answers(None, disk, look) == answers(None, tmp_path, look)
    assert (disk / "a.db").stat().st_size == (tmp_path / "a.db").stat().st_size


def test_large_transaction_has_bounded_memory(library: str, disk: Path) -> None:
    if "libasan" in library:
        pytest.skip("ASan has memory of its own")
    # 160 MB of pages, all of them changed, and most of them in the journal too.
    rows = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 40000) "
    measure = """
        # Not ru_maxrss, which begins with what the parent had when it started this process.
        peak, = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
        print(int(peak.split()[1]) >> 10, flush=True)
    """
    statements = ["PRAGMA cache_size = 100", "CREATE TABLE t(x)",
                  f"INSERT INTO t {rows} SELECT zeroblob(3900) FROM c",
                  "UPDATE t SET x = randomblob(3900)", "BEGIN", "UPDATE t SET x = zeroblob(3900)",
                  "ROLLBACK", "SELECT count(*), sum(length(x)) FROM t"]  # fmt: skip
    said = subprocess.run(
        python(library, textwrap.dedent(PLAYER) + textwrap.dedent(measure)),
        input="\n".join(statements), cwd=disk, capture_output=True, text=True, check=True,
        timeout=HANG_S,
    ).stdout.splitlines()  # fmt: skip
    assert said[-2] == "[(40000, 156000000)]"
    assert int(said[-1]) < 140
    assert (disk / "joj-redo.log").stat().st_size == LOG_BYTES
    assert play(None, disk, ["PRAGMA integrity_check"]) == ["[('ok',)]"]


HOLDER = """
    import fcntl, os, struct, sys
    fd = os.open("joj-redo.log", os.O_RDWR)
    fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))  # F_OFD_SETLK
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.full
def test_busy_timeout_holds_while_another_has_the_log(library: str, disk: Path) -> None:
    play_and_die(library, disk, ["CREATE TABLE t(x)", *insert(3)])
    writer = """
        import sqlite3, sys
        db = sqlite3.connect("a.db", isolation_level=None, timeout=0.1)
        db.execute("INSERT INTO t VALUES (1)")
        print("written", flush=True)
        sys.stdin.readline()
        try:
            db.execute("INSERT INTO t VALUES (1)")
        except sqlite3.OperationalError as error:
            print(error, flush=True)
        sys.stdin.readline()
        db.execute("INSERT INTO t VALUES (1)")
        print(db.execute("SELECT count(*) FROM t").fetchall(), flush=True)
    """
    with subprocess.Popen(python(library, writer), cwd=disk, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "written\n"
        with subprocess.Popen(python(None, HOLDER), cwd=disk, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as holder:  # fmt: skip
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "database is locked\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[(5,)]\n"


DATABASES = st.sampled_from(["main", "b", "c"])
VALUES = st.sampled_from(["zeroblob(10)", "zeroblob(3000)", "zeroblob(30000)", "'text'"])
STATEMENTS = st.one_of(
    st.builds("INSERT INTO {}.t VALUES ({})".format, DATABASES, VALUES),
    st.builds("UPDATE {}.t SET x = {} WHERE rowid % 3 = 1".format, DATABASES, VALUES),
    st.builds("DELETE FROM {}.t WHERE rowid % 4 = {}".format, DATABASES, st.integers(0, 3)),
    st.builds("INSERT INTO {}.t SELECT x FROM {}.t LIMIT 40".format, DATABASES, DATABASES),
    st.builds("PRAGMA {}.journal_mode = {}".format, DATABASES,
              st.sampled_from(["delete", "truncate", "persist", "memory", "wal"])),
    st.builds("PRAGMA {}.cache_size = {}".format, DATABASES, st.sampled_from([5, 2000])),
    st.builds("VACUUM {}".format, DATABASES),
    st.builds("PRAGMA {}.page_size = {}".format, DATABASES, st.sampled_from([512, 8192])),
    st.builds("PRAGMA {}.synchronous = {}".format, DATABASES, st.sampled_from(["off", "full"])),
    st.builds("PRAGMA {}.locking_mode = {}".format, DATABASES,
              st.sampled_from(["normal", "exclusive"])),
    st.builds("PRAGMA {}.incremental_vacuum".format, DATABASES),
    st.builds("SELECT count(*), sum(length(x)) FROM {}.t".format, DATABASES),
    st.sampled_from(["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "COMMIT", "COMMIT", "ROLLBACK",
                     "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "PRAGMA mmap_size = 1000000"]),
)  # fmt: skip
BEGINNING = [
    *ATTACH,
    *(
        f"PRAGMA {name}.auto_vacuum = {kind}"
        for name, kind in (("b", "full"), ("c", "incremental"))
    ),
    *(f"CREATE TABLE IF NOT EXISTS {name}.t(x)" for name in ("main", "b", "c")),
]
ENDING = [
    "ROLLBACK",
    *(f"SELECT rowid, length(x) FROM {name}.t" for name in ("main", "b", "c")),
    *(f"PRAGMA {name}.integrity_check" for name in ("main", "b", "c")),
]


@settings(max_examples=15)
@given(st.lists(st.tuples(st.booleans(), st.lists(STATEMENTS, max_size=25)), max_size=4))
def test_any_program_sees_what_stock_sqlite_shows(
    library: str, tmp_path_factory: pytest.TempPathFactory,
    sessions: list[tuple[bool, list[str]]],
) -> None:  # fmt: skip
    ours, stock = (tmp_path_factory.mktemp(name) for name in ("ours", "stock"))
    for with_vfs, statements in [*sessions, (True, [])]:
        program = [*BEGINNING, *statements, *ENDING]
        assert answers(library if with_vfs else None, ours, program) == answers(
            None, stock, program
        )
    assert answers(None, ours, [*ATTACH, *ENDING]) == answers(None, stock, [*ATTACH, *ENDING])


def test_a_new_process_of_the_shell_loads_joj_redo(disk: Path, tmp_path: Path) -> None:
    library = build(SOURCE, tmp_path / "build", "joj_redo")
    load = ["-cmd", f".load {library}", "-cmd", ".open a.db"]
    said = subprocess.run(
        ["sqlite3", ":memory:", *load, "CREATE TABLE t(x); PRAGMA joj_redo"], cwd=disk, check=True,
        capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert said.stdout == "on\n"
    with sqlite3.connect(disk / "a.db") as db:
        assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    db.close()
