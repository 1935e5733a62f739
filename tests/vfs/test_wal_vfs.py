"""The VFS that keeps and fills write-ahead logs, in programs that were not changed.

Each test runs Python's own SQLite in a process with LD_PRELOAD, or without it as the stock one.
"""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hangs import HANG_S
from tests.vfs.programs import PLAYER, SOURCE, answers, build, build_preload, play, python

FIRST_STEP_BYTES = 64 << 10
MAX_FILL_BYTES = 4 << 20
OTHER_MODES = ("delete", "truncate", "persist", "memory", "off")

WRITER = """
    import sqlite3, sys
    db = sqlite3.connect("a.db", isolation_level=None, timeout=60)
    db.execute("PRAGMA journal_mode = wal")
    db.execute("CREATE TABLE IF NOT EXISTS t(writer, number, filler)")
    number = 0
    while True:
        number += 1
        db.execute("INSERT INTO t VALUES (?, ?, zeroblob(3000))", (int(sys.argv[1]), number))
        print(number, flush=True)
"""


@pytest.fixture(
    scope="session", params=["plain", pytest.param("sanitized", marks=pytest.mark.full)]
)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library, built from this checkout."""
    return build_preload("joj_wal", request.param, tmp_path_factory.mktemp("vfs"))


def wal_bytes(disk: Path) -> int:
    """Return the size of the WAL; 0 where there is none."""
    wal = disk / "a.db-wal"
    return wal.stat().st_size if wal.exists() else 0


def insert(count: int) -> list[str]:
    """Return single inserts, each a transaction of one or two pages."""
    return ["INSERT INTO t VALUES (zeroblob(100))"] * count


BEGIN = ("PRAGMA journal_mode = wal", "CREATE TABLE t(x)")


@pytest.mark.parametrize(
    ("inserts", "expected_bytes"),
    [(0, FIRST_STEP_BYTES), (10, FIRST_STEP_BYTES), (20, 2 * FIRST_STEP_BYTES),
     (100, 8 * FIRST_STEP_BYTES), (900, MAX_FILL_BYTES), (2500, MAX_FILL_BYTES)],
)  # fmt: skip
def test_wal_grows_in_steps_that_double(
    library: str, disk: Path, inserts: int, expected_bytes: int
) -> None:
    play(library, disk, [*BEGIN, *insert(inserts)])
    assert wal_bytes(disk) == expected_bytes


def test_steady_commit_is_two_writes_and_one_fdatasync(library: str, disk: Path) -> None:
    play(library, disk, [*BEGIN, *insert(20)])
    before_bytes = wal_bytes(disk)
    log = disk / "log"
    calls = "pwrite64,fdatasync,fsync,ftruncate,unlink"
    play_traced = ["strace", "-f", "-y", "-o", str(log), "-e", calls, *python(library, PLAYER)]
    subprocess.run(
        play_traced, input="\n".join(insert(10)), cwd=disk, check=True,
        stdout=subprocess.DEVNULL, text=True, timeout=HANG_S,
    )  # fmt: skip
    of_wal = re.findall(r"(\w+)\(\d+<\S*a\.db-wal>", log.read_text())
    # Beside the commits: the header of a new log, all frames before they are copied to the database
    # at the end, and the zeros in place of the header.
    assert of_wal.count("fdatasync") == 10 + 3
    assert "fsync" not in of_wal
    assert of_wal.count("pwrite64") == 1 + 10 * 2 + 1
    assert wal_bytes(disk) == before_bytes
    assert not re.search(r"unlink\(\S*a\.db-wal", log.read_text())


def test_closed_database_is_read_and_written_by_stock_sqlite(library: str, disk: Path) -> None:
    play(library, disk, [*BEGIN, *insert(20)])
    assert (disk / "a.db-wal").read_bytes()[:32] == bytes(32)
    assert play(None, disk, ["SELECT count(*) FROM t", "PRAGMA integrity_check"]) == [
        "[(20,)]", "[('ok',)]",
    ]  # fmt: skip
    assert wal_bytes(disk) == 0  # stock SQLite deletes it
    play(library, disk, insert(1))
    assert wal_bytes(disk) == FIRST_STEP_BYTES
    assert play(None, disk, ["SELECT count(*) FROM t"]) == ["[(21,)]"]


@pytest.mark.parametrize("locking", ["normal", "exclusive"])
@pytest.mark.parametrize("mode", OTHER_MODES)
def test_wal_is_deleted_when_the_database_leaves_wal_mode(
    library: str, disk: Path, mode: str, locking: str
) -> None:
    leave = [f"PRAGMA locking_mode = {locking}", f"PRAGMA journal_mode = {mode}"]
    assert play(library, disk, [*BEGIN, *insert(3), *leave, *insert(2)])[-3] == f"[('{mode}',)]"
    assert not (disk / "a.db-wal").exists()
    for sqlite in (library, None):
        assert play(sqlite, disk, ["PRAGMA journal_mode", "SELECT count(*) FROM t"]) == [
            "[('delete',)]", "[(5,)]",
        ]  # fmt: skip


def test_no_room_leaves_the_wal_as_long_as_its_frames(library: str, disk: Path) -> None:
    # No file may be longer than 160 KiB: the third step cannot be filled.
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (160 << 10, 160 << 10))\n"
    statements = [*BEGIN, "PRAGMA wal_autocheckpoint = 35", *insert(60)]
    answer = subprocess.run(
        python(library, limit + textwrap.dedent(PLAYER)), input="\n".join(statements), cwd=disk,
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    frames_bytes = wal_bytes(disk) - 32
    assert frames_bytes > 2 * FIRST_STEP_BYTES
    assert frames_bytes % (4096 + 24) == 0
    assert play(None, disk, ["SELECT count(*) FROM t", "PRAGMA integrity_check"]) == [
        "[(60,)]", "[('ok',)]",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o444 | 0o200])
def test_wal_gets_the_mode_that_its_database_has_now(library: str, disk: Path, mode: int) -> None:
    wal = disk / "a.db-wal"
    play(library, disk, [*BEGIN, *insert(3)])
    (disk / "a.db").chmod(mode)
    # When the database is opened again, and where it is changed while it is open.
    play(library, disk, ["PRAGMA wal_checkpoint", "SELECT count(*) FROM t"])
    assert wal.stat().st_mode & 0o777 == mode
    with sqlite3.connect(disk / "a.db") as reader:
        reader.execute("SELECT count(*) FROM t")
        (disk / "a.db").chmod(0o640)
    reader.close()
    play(library, disk, insert(1))
    assert wal.stat().st_mode & 0o777 == 0o640


FAULTS = {
    "frames stay valid when the database is closed": (
        "wal_vfs.c", "pwrite(fd, zeros, WAL_HEADER_BYTES, 0) == WAL_HEADER_BYTES &&", "",
        "test_closed_database_is_read_and_written_by_stock_sqlite", (),
    ),
    "header is reset without a sync": (
        "wal_vfs.c", "== WAL_HEADER_BYTES && fdatasync(fd) == 0;", "== WAL_HEADER_BYTES;",
        "test_steady_commit_is_two_writes_and_one_fdatasync", (),
    ),
    "zeros and frames are never synced": (
        "wal_vfs.c", "rc = fdatasync(wal->sync_fd);", "rc = 0;",
        "test_steady_commit_is_two_writes_and_one_fdatasync", (),
    ),
    "WAL stays when the database leaves WAL mode": (
        "wal_vfs.c", "rc = lower->xDelete(lower, path, 0);",
        "rc = lower != NULL ? SQLITE_OK : SQLITE_ERROR;",
        "test_wal_is_deleted_when_the_database_leaves_wal_mode", ("delete", "normal"),
    ),
    "zeros go over the last frame": (
        "wal_vfs.c", "begin_bytes = wal->size_bytes,", "begin_bytes = wal->size_bytes - 4096,",
        "test_killed_writers_lose_no_acknowledged_commit", (1,),
    ),
    "room for zeros is never given back": (
        "wal_vfs.c", "LOWER(wal, xTruncate, begin_bytes);", "rc = SQLITE_FULL;",
        "test_no_room_leaves_the_wal_as_long_as_its_frames", (),
    ),
    "WAL keeps its mode": (
        "wal_vfs.c", "fchmod(fd, database.st_mode & MODE_BITS) != 0", "0",
        "test_wal_gets_the_mode_that_its_database_has_now", (0o600,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str, disk: Path, tmp_path: Path) -> None:
    file, before, after, test, arguments = FAULTS[fault]
    source = tmp_path / "vfs"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build"))
    text = (source / file).read_text()
    assert text.count(before) == 1
    (source / file).write_text(text.replace(before, after))
    library = str(build(source, tmp_path / "build", "joj_wal_preload"))
    with pytest.raises(AssertionError):
        globals()[test](library, disk, *arguments)


@pytest.mark.parametrize("processes", [1, 4])
def test_killed_writers_lose_no_acknowledged_commit(
    library: str, disk: Path, processes: int
) -> None:
    acknowledged = dict.fromkeys(range(1, processes + 1), 0)
    for rounds in range(3):
        # With one process and the VFS each second round is stock SQLite's: they may take turns.
        running = [
            subprocess.Popen(
                python(library if (rounds + number) % 2 == 0 or processes > 1 else None,
                       WRITER, number), cwd=disk, stdout=subprocess.PIPE, text=True,
            )
            for number in acknowledged
        ]  # fmt: skip
        for number, process in zip(acknowledged, running, strict=True):
            assert process.stdout
            for _ in range(40):
                assert process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split()
            process.wait()
            acknowledged[number] += 40 + len(lines)
    counted = play(None, disk, ["SELECT writer, count(*) FROM t GROUP BY writer ORDER BY writer",
                                "PRAGMA integrity_check"])  # fmt: skip
    assert counted[1] == "[('ok',)]"
    for (_, rows), wanted in zip(eval(counted[0]), acknowledged.values(), strict=True):
        # A killed process may have committed one more than it could say.
        assert wanted <= rows <= wanted + 3


STATEMENTS = st.sampled_from(
    [
        "INSERT INTO t VALUES (zeroblob(100))",
        "INSERT INTO t SELECT zeroblob(4000) FROM t LIMIT 50",
        "DELETE FROM t WHERE rowid % 3 = 0",
        "UPDATE t SET x = zeroblob(rowid % 7 * 100) WHERE rowid % 2",
        "BEGIN", "COMMIT", "ROLLBACK",
        "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA journal_mode = wal", "PRAGMA journal_mode = delete",
        "PRAGMA journal_mode = truncate", "PRAGMA journal_size_limit = 100000",
        "PRAGMA locking_mode = exclusive", "PRAGMA locking_mode = normal", "VACUUM",
    ]
)  # fmt: skip


@settings(max_examples=15)
@given(st.lists(st.tuples(st.booleans(), st.lists(STATEMENTS, max_size=12)), max_size=6))
def test_any_program_sees_what_stock_sqlite_shows(
    library: str, tmp_path_factory: pytest.TempPathFactory,
    sessions: list[tuple[bool, list[str]]],
) -> None:  # fmt: skip
    ours, stock = (tmp_path_factory.mktemp(name) for name in ("ours", "stock"))
    for disk in (ours, stock):
        with sqlite3.connect(disk / "a.db") as db:
            db.execute("CREATE TABLE t(x)")
        db.close()
    for with_vfs, statements in sessions:
        said = [
            answers(library if with_vfs else None, ours, statements),
            answers(None, stock, statements),
        ]
        assert said[0] == said[1]
    rows = [play(None, disk, ["SELECT rowid, quote(x) FROM t"]) for disk in (ours, stock)]
    assert rows[0] == rows[1]
