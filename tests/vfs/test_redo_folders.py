"""Tests transactions of joj_redo over databases of several folders, each with a log of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.hangs import HANG_S
from tests.vfs.conftest import build_libraries
from tests.vfs.disk_states import Call, read_calls
from tests.vfs.programs import (
    PLAYER,
    answers,
    build_preload,
    change_source,
    leave,
    play,
    preload_of,
    python,
)  # fmt: skip

LOG = "joj-redo.log"
# Two transactions over two databases, of which the first sets the marks.
WRITER = """
    import sqlite3
    db = sqlite3.connect("a/t.db", isolation_level=None)
    db.execute("ATTACH 'b/t.db' AS b")
    for number in (2, 3):
        db.execute("BEGIN")
        for name in ("main", "b"):
            db.execute(f"INSERT INTO {name}.t VALUES (?)", (number,))
        db.execute("COMMIT")
"""


def look(library: str | None, disk: Path) -> list[str]:
    """Return what the database of each folder answers, opened alone, or why it does not open."""
    return [
        next(
            answer
            for answer in answers(library, disk / name, ["ATTACH 't.db' AS x", "SELECT x FROM x.t"])
            if answer != "[]"
        )
        for name in ("a", "b")
    ]


def begin(library: str, disk: Path) -> None:
    """Make the two databases."""
    for name in ("a", "b"):
        (disk / name).mkdir(parents=True)
        rows = ["CREATE TABLE x.t(x)", "INSERT INTO x.t VALUES (1)"]
        play(library, disk / name, ["ATTACH 't.db' AS x", *rows])


def write(libraries: Path, disk: Path, **environment: str) -> int:
    """Run the two transactions, and return how the process ended."""
    preload = preload_of(libraries, "call_log", "joj_redo_preload")
    return subprocess.run(
        python(preload, WRITER), cwd=disk, capture_output=True, check=False, timeout=HANG_S,
        env={**os.environ, "CALLS_FOLDER": str(disk), **environment},
    ).returncode  # fmt: skip


def log_id(folder: Path) -> int:
    """Return the id of a folder's log (vfs/redo_format.h)."""
    data = (folder / LOG).read_bytes()
    headers = [struct.unpack_from("<3Q", data, at) for at in (0, 4096)]
    newer = max(headers, key=lambda header: int(header[2]))
    return int(newer[1])


def die(libraries: Path, disk: Path, *, is_committed: bool) -> tuple[str, str]:
    """Die in the second transaction, between the record of the first log and that of the
    coordinator, or behind both. Return the name of the coordinator's folder, and the other's.
    """
    log, copy = disk.with_name("calls"), disk.with_name("copy")
    begin(preload_of(libraries, "joj_redo_preload"), copy)
    assert write(libraries, copy, CALLS_LOG=str(log)) == 0
    # The records of two marks, and two of each transaction.
    record = [number for number, call in enumerate(read_calls(log), 1) if is_record(call)][5]
    death = record + 2 if is_committed else record
    begin(preload_of(libraries, "joj_redo_preload"), disk)
    assert write(libraries, disk, CALLS_DEATH=str(death)) == -signal.SIGKILL
    first, second = sorted(("a", "b"), key=lambda name: log_id(disk / name))
    return first, second


def is_record(call: Call) -> bool:
    """Return whether the call writes a record, and neither zeros nor a header."""
    return call.kind == "w" and call.name.endswith(LOG) and call.offset >= 8192 and any(call.data)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A folder for the two."""
    return tmp_path / "disk"


@pytest.fixture(scope="module")
def libraries(checked_libraries: Path) -> Path:
    """Both VFSes, also with the sanitizers."""
    return checked_libraries


@pytest.fixture(scope="module")
def library(libraries: Path) -> str:
    """The VFS, without a log of calls."""
    return preload_of(libraries, "joj_redo_preload")


OUTCOMES = [(False, "[(1,), (2,)]"), (True, "[(1,), (2,), (3,)]")]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_commit_is_one_write_and_one_flush_in_each_folder(
    tmp_path: Path, disk: Path, places: int
) -> None:
    library, names = build_preload("joj_redo", "plain", tmp_path), ["main", "b", "c"][:places]
    counts = []
    for commits in (10, 30):
        folder, log = disk / str(commits), disk / f"{commits}.log"
        statements = []
        for name in names[1:]:
            (folder / name).mkdir(parents=True)
            statements.append(f"ATTACH '{name}/{name}.db' AS {name}")
        folder.mkdir(parents=True, exist_ok=True)
        statements += [f"CREATE TABLE {name}.t(x)" for name in names]
        rows = [f"INSERT INTO {name}.t VALUES (1)" for name in names]
        statements += ["BEGIN", *rows, "COMMIT"] * commits
        calls = "pwrite64,fdatasync,fsync"
        trace = ["strace", "-f", "-y", "-o", str(log), "-e", calls, *python(library, PLAYER)]
        subprocess.run(
            trace, input="\n".join(statements), cwd=folder, check=True, timeout=HANG_S,
            stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        text = log.read_text()
        written = len(re.findall(r"pwrite64\(\d+<\S*joj-redo\.log>", text))
        counts.append((written, len(re.findall(r"(?:fdatasync|fsync)\(", text))))
        assert "-journal" not in text
    more = [many - few for few, many in zip(*counts, strict=True)]
    assert more == [20 * places] * 2


@pytest.mark.parametrize(("is_committed", "rows"), OUTCOMES)
@pytest.mark.parametrize("has_other_first", [False, True])
def test_transaction_in_doubt_ends_alike_in_both(
    libraries: Path, library: str, disk: Path, is_committed: bool, rows: str,
    has_other_first: bool,
) -> None:  # fmt: skip
    first, other = die(libraries, disk, is_committed=is_committed)
    assert look(None, disk) == ["file is not a database"] * 2
    said = leave(disk / (other if has_other_first else first) / "x")
    assert said.returncode == 1
    for name in (other, first) if has_other_first else (first, other):
        assert leave(disk / name / "t.db").returncode == 0
    assert look(None, disk) == [rows, rows]


@pytest.mark.parametrize(("is_committed", "rows"), OUTCOMES)
def test_coordinator_that_went_on_knows_the_outcome(
    libraries: Path, library: str, disk: Path, is_committed: bool, rows: str
) -> None:
    """It was emptied, and has commits of its own since."""
    first, other = die(libraries, disk, is_committed=is_committed)
    for _ in range(3):
        play(library, disk / first, ["ATTACH 't.db' AS x", "CREATE TABLE x.u(x)",
                                     "DROP TABLE x.u"])  # fmt: skip
    (disk / "c").mkdir()
    play(library, disk / first, ["ATTACH 't.db' AS x", "ATTACH '../c/c.db' AS c", "BEGIN",
                                 "CREATE TABLE x.u(x)", "CREATE TABLE c.u(x)",
                                 "COMMIT"])  # fmt: skip
    assert leave(disk / other / "t.db").returncode == 0
    assert look(None, disk) == [rows, rows]


@pytest.mark.parametrize(("is_committed", "rows"), OUTCOMES)
def test_database_whose_coordinator_is_away_is_refused(
    libraries: Path, library: str, disk: Path, is_committed: bool, rows: str
) -> None:
    first, other = die(libraries, disk, is_committed=is_committed)
    (disk / first).rename(disk / "away")
    before = (disk / other / "t.db").read_bytes()
    for _ in range(2):
        said = leave(disk / other / "t.db")
        assert said.returncode == 1
        assert f"{disk}/{first}" in said.stderr
        assert "No such file or directory" in said.stderr
        assert "put it back" in said.stderr
        refused = answers(library, disk / other, ["ATTACH 't.db' AS x"])
        assert refused == ["unable to open database: t.db"]
    assert (disk / other / "t.db").read_bytes() == before
    (disk / "away").rename(disk / first)
    assert look(library, disk) == [rows, rows]


@pytest.mark.parametrize(("is_committed", "rows"), OUTCOMES)
def test_copy_of_a_coordinator_may_say_yes_alone(
    libraries: Path, library: str, disk: Path, is_committed: bool, rows: str
) -> None:
    """One that does not know the transaction may be of before."""
    first, other = die(libraries, disk, is_committed=is_committed)
    (disk / first).rename(disk / "away")
    shutil.copytree(disk / "away", disk / first)
    said = leave(disk / other / "t.db")
    assert said.returncode == (not is_committed)
    if not is_committed:
        assert "it is another one, or a copy" in said.stderr
    shutil.rmtree(disk / first)
    (disk / "away").rename(disk / first)
    assert look(library, disk) == [rows, rows]


def test_copy_of_a_database_in_doubt_is_refused_when_both_went_on(
    libraries: Path, library: str, disk: Path
) -> None:
    _, other = die(libraries, disk, is_committed=True)
    shutil.copytree(disk / other, disk / "copy")
    assert write(libraries, disk) == 0
    (disk / other).rename(disk / "away")
    (disk / "copy").rename(disk / other)
    said = leave(disk / other / "t.db")
    assert said.returncode == 1
    assert "it is another one, or a copy" in said.stderr


def test_other_log_with_the_name_of_the_coordinator_is_not_asked(
    libraries: Path, library: str, disk: Path
) -> None:
    first, other = die(libraries, disk, is_committed=True)
    (disk / first).rename(disk / "away")
    (disk / first).mkdir()
    play(library, disk / first, ["CREATE TABLE t(x)"])
    said = leave(disk / other / "t.db")
    assert said.returncode == 1
    assert "it is another one, or a copy" in said.stderr


def commit_over(library: str, disk: Path, paths: list[str]) -> None:
    """Commit over databases, and die."""
    names = ["main", "b"]
    die_now = "\n    import os\n    os.kill(os.getpid(), 9)\n"
    statements = [
        f"ATTACH '{paths[1]}' AS b", *(f"CREATE TABLE IF NOT EXISTS {name}.t(x)" for name in names),
        "BEGIN", *(f"INSERT INTO {name}.t VALUES (1)" for name in names), "COMMIT",
    ]  # fmt: skip
    program = PLAYER.replace('"a.db"', f'"{paths[0]}"') + die_now
    died = subprocess.run(
        python(library, program), input="\n".join(statements), cwd=disk, capture_output=True,
        text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr


def has_marks(paths: list[Path]) -> list[bool]:
    """Return whether each database has the mark of joj_redo."""
    return [path.read_bytes()[18:20] == b"\3\3" for path in paths]


def test_folders_of_two_filesystems_commit_as_sqlite_does(library: str, disk: Path) -> None:
    disk.mkdir()
    with TemporaryDirectory(dir="/dev/shm") as memory:
        paths = ["a.db", f"{memory}/b.db"]
        assert disk.stat().st_dev != Path(memory).stat().st_dev
        commit_over(library, disk, paths)
        assert has_marks([disk / "a.db", Path(paths[1])]) == [False, False]
        assert play(None, disk, [f"ATTACH '{paths[1]}' AS b", "SELECT * FROM t, b.t"])[1:] \
            == ["[(1, 1)]"]  # fmt: skip


def test_copied_folders_commit_as_sqlite_does(library: str, disk: Path) -> None:
    """Their logs have the same id."""
    (disk / "a").mkdir(parents=True)
    play(library, disk / "a", ["CREATE TABLE t(x)"])
    shutil.copytree(disk / "a", disk / "b")
    commit_over(library, disk, ["a/a.db", "b/a.db"])
    assert has_marks([disk / "a/a.db", disk / "b/a.db"]) == [False, False]


def test_coordinator_without_a_place_commits_as_sqlite_does(tmp_path: Path, disk: Path) -> None:
    source = change_source(tmp_path, "redo_format.h", "MAX_OUTCOMES 64", "MAX_OUTCOMES 1")
    library = f"{build_libraries(source, tmp_path / 'build')}/joj_redo_preload.so"
    for name in ("a", "b", "c", "d"):
        (disk / name).mkdir(parents=True)
        play(library, disk / name, ["CREATE TABLE t(x)"])
    names = sorted(("a", "b", "c", "d"), key=lambda name: log_id(disk / name))
    first = f"{names[0]}/a.db"
    for number, name in enumerate(names[1:]):
        commit_over(library, disk, [first, f"{name}/a.db"])
        has_place = number == 0
        assert has_marks([disk / first, disk / name / "a.db"]) == [has_place] * 2
        for each in (names[0], name):
            play(library, disk / each, ["SELECT * FROM t"])
