"""Tests what is left of databases of joj_redo when the power goes, a process dies or a call fails.

A program commits numbered transactions over one database or several, and says each one that
returned. Then each database holds all of them, and the databases agree.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.ended import HANG_S
from tests.vfs.disk_states import Disk, read_calls, write_state
from tests.vfs.programs import SOURCE, build, python

WRITER = """
    import os, random, sqlite3, sys
    mode = sys.argv[1]
    databases, commits, page_bytes, cache_pages, connections, has_link = map(int, sys.argv[2:])
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
        return db

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
    if has_link:
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
"""

# One line a folder: how many databases. Answers with what each VFS sees: the number of the last
# transaction in each database, or a word.
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
        databases, is_stock_first, folder = json.loads(line)
        os.chdir(folder)
        names = ["main", "b", "c"][:databases]
        order = ["unix"] * is_stock_first + ["joj_redo", "unix"]
        print(json.dumps([look(names, vfs) for vfs in order]), flush=True)
"""


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of vfs/, and the library that logs calls."""
    return build_all(SOURCE, tmp_path_factory.mktemp("vfs"))


def build_all(source: Path, folder: Path) -> Path:
    """Build a source of vfs/ with the library that logs calls."""
    # A small log is emptied often, and has to grow for some records.
    build(source, folder, "gcc -DLOG_BYTES=131072")
    file = Path(__file__).with_name("call_log.c")
    compile_it = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", str(file), "-o"]
    subprocess.run([*compile_it, str(folder / "call_log.so")], check=True)
    return folder


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


CASES = [
    Case(),
    Case(databases=3),
    Case("truncate", databases=2, page_bytes=1024, cache_pages=5),
    Case("persist", page_bytes=512, cache_pages=5),
    Case("delete", databases=2, page_bytes=65536),
    Case(databases=2, connections=2),
    Case(databases=2, has_link=True),
]


def write(
    libraries: Path, folder: Path, case: Case, *, is_stock: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with its calls logged."""
    folder.mkdir(exist_ok=True)
    preload = f"{libraries}/call_log.so"
    if not is_stock:
        preload += f":{libraries}/joj_redo_preload.so"
    command = python(
        preload, WRITER, case.mode, case.databases, case.commits, case.page_bytes,
        case.cache_pages, case.connections, int(case.has_link),
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
        self.process.stdin.write(json.dumps([case.databases, is_stock_first, str(folder)]) + "\n")
        self.process.stdin.flush()
        answer: list[list[int | str]] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def reader(libraries: Path) -> Iterator[Reader]:
    """A reader, until the end of the block."""
    command = python(f"{libraries}/joj_redo_preload.so", READER)
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


def cut_the_power(
    libraries: Path, folder: Path, case: Case, states: int, seed: int, *, stock_commits: int = 0,
    syncs_names: bool = False,
) -> None:  # fmt: skip
    """Look at states that power cuts leave of the program; some lose the power twice.

    With stock_commits, stock SQLite has written to the databases before; the power is cut after
    the first commit that is not its own.
    """
    disk_folder, log, draw = folder / "disk", folder / "log", random.Random(seed)
    begin = 0
    for each in [replace(case, commits=stock_commits)] * bool(stock_commits) + [case]:
        is_stock = each is not case
        done = write(libraries, disk_folder, each, is_stock=is_stock, CALLS_LOG=str(log))
        assert done.returncode == 0, done.stderr
    calls = read_calls(log)
    if stock_commits:
        begin = next(
            number for number, call in enumerate(calls, 1)
            if (call.kind, call.name) == ("w", "acknowledged") and int(call.data) > stock_commits
        )  # fmt: skip
    disk, acknowledged, at = Disk({}, syncs_names=syncs_names), -1, 0
    with reader(libraries) as looking:
        for point in sorted(draw.randrange(begin, len(calls) + 1) for _ in range(states)):
            for call in calls[at:point]:
                if call.name != "acknowledged":
                    disk.see(call)
                elif call.kind == "w":
                    acknowledged = int(call.data)
            at = point
            state = disk.cut(draw, torn=True)
            if draw.random() < 0.2:
                state = cut_again(libraries, disk_folder, state, draw)
            write_state(disk_folder, state)
            views = looking.read(case, disk_folder, is_stock_first=draw.random() < 0.5)
            assert_right(views, acknowledged)


def cut_again(
    libraries: Path, folder: Path, state: dict[str, bytes], draw: random.Random
) -> dict[str, bytes]:
    """Return a state that a power cut leaves of the recovery of one."""
    write_state(folder, state)
    log = folder.with_name("recovery")
    log.unlink(missing_ok=True)
    code = "import sqlite3\nsqlite3.connect('main.db').execute('SELECT 1 FROM sqlite_schema')"
    preload = f"{libraries}/call_log.so:{libraries}/joj_redo_preload.so"
    subprocess.run(
        python(preload, code), cwd=folder, capture_output=True, check=False, timeout=HANG_S,
        env={**os.environ, "CALLS_FOLDER": str(folder), "CALLS_LOG": str(log)},
    )  # fmt: skip
    calls = read_calls(log) if log.exists() else []
    disk = Disk(state)
    for call in calls[: draw.randrange(len(calls) + 1)]:
        disk.see(call)
    return disk.cut(draw, torn=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_power_cuts_lose_no_acknowledged_commit(
    libraries: Path, tmp_path: Path, case: Case
) -> None:
    cut_the_power(libraries, tmp_path, case, states=50, seed=1)


def test_journal_that_stock_sqlite_deleted_is_not_played_over_commits(
    libraries: Path, tmp_path: Path
) -> None:
    cut_the_power(libraries, tmp_path, Case(commits=8), states=50, seed=1, stock_commits=5)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_more_power_cuts_lose_no_acknowledged_commit(
    libraries: Path, tmp_path: Path, case: Case, seed: int
) -> None:
    cut_the_power(libraries, tmp_path, case, states=400, seed=seed)


@pytest.mark.parametrize("databases", [1, 3])
def test_process_may_die_at_any_call(libraries: Path, tmp_path: Path, databases: int) -> None:
    case, folder, draw = Case(databases=databases, commits=30), tmp_path / "disk", random.Random(1)
    log = tmp_path / "log"
    assert write(libraries, folder, case, CALLS_LOG=str(log)).returncode == 0
    calls = len(read_calls(log))
    with reader(libraries) as looking:
        for _ in range(20):
            death = str(draw.randrange(1, calls + 1))
            died = write(libraries, folder, case, CALLS_DEATH=death)
            assert died.returncode in (-signal.SIGKILL, 0), died.stderr
            views = looking.read(case, folder, is_stock_first=draw.random() < 0.5)
            assert_right(views, acknowledgement(folder))


def test_processes_that_die_beside_others_lose_nothing(libraries: Path, tmp_path: Path) -> None:
    """Four writers at a time; each transaction is of all databases, in turn."""
    folder, draw = tmp_path / "disk", random.Random(1)
    case = Case(databases=2, commits=15)
    assert write(libraries, folder, case).returncode == 0
    code = """
        import sqlite3, sys
        db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
        db.execute("ATTACH 'b.db' AS b")
        while True:
            db.execute("BEGIN IMMEDIATE")
            [number] = db.execute("SELECT number + 1 FROM last").fetchone()
            for name in ("main", "b"):
                db.execute(f"INSERT INTO {name}.t VALUES (?, 1, zeroblob(300))", (number,))
                db.execute(f"UPDATE {name}.last SET number = ?1, total = total + ?1", (number,))
            db.execute("COMMIT")
            print(number, flush=True)
    """
    preload = f"{libraries}/call_log.so:{libraries}/joj_redo_preload.so"
    with reader(libraries) as looking:
        for _ in range(4):
            running = [
                subprocess.Popen(
                    python(preload, code), cwd=folder, stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "CALLS_FOLDER": str(folder),
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
def test_call_that_fails_leaves_nothing_half(
    libraries: Path, tmp_path: Path, kind: str, once: str
) -> None:
    case, draw = Case(databases=2, commits=25), random.Random(1)
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


def change_source(folder: Path, file: str, before: str, after: str) -> Path:
    """Return a copy of vfs/, in which one place of a file is another."""
    source = folder / "vfs"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build"))
    text = (source / file).read_text()
    assert text.count(before) == 1
    (source / file).write_text(text.replace(before, after))
    return source


def fuzz(source: Path, folder: Path, inputs: str) -> subprocess.CompletedProcess[str]:
    """Recover logs and marks of any bytes, until one does harm or there were so many inputs."""
    return subprocess.run(
        ["make", "-s", "-C", source, "fuzz", f"BUILD={folder}", f"FUZZING={inputs} -seed=1"],
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip


@pytest.mark.parametrize(
    "inputs", ["-runs=2000", pytest.param("-max_total_time=60", marks=pytest.mark.full)]
)
def test_no_bytes_of_a_log_or_a_mark_do_harm(tmp_path: Path, inputs: str) -> None:
    done = fuzz(SOURCE, tmp_path, inputs)
    assert done.returncode == 0, done.stderr[-4000:]
    print(*(line for line in done.stderr.splitlines() if "number_of_executed_units" in line))


BELIEFS = {
    "how long an item is": ("redo_record.c", "item->length_bytes > MAX_PAYLOAD_BYTES ||", ""),
    "how many ids were lost": ("redo_record.c", "header->lost_count <= MAX_LOST &&", ""),
    "that a database has a mark": (
        "redo_recovery.c",
        "\tif (read_mark(header, &log_id, &id) && log_id == log->id && id == reader->item.value)",
        "\tread_mark(header, &log_id, &id);\n\tif (is_sqlite_header(header))",
    ),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("belief", BELIEFS)
def test_log_that_is_believed_is_found_to_do_harm(belief: str, tmp_path: Path) -> None:
    source = change_source(tmp_path, *BELIEFS[belief])
    done = fuzz(source, tmp_path / "build", "-runs=15000")
    assert "Test unit written to" in done.stderr, done.stderr[-4000:]


FAULTS = {
    "the log is not synced": (
        "redo_log.c", "\t\tif (error == 0 && must_sync)\n\t\t\terror = sync_log(log);\n",
        "\t\t(void)must_sync;\n",
    ),
    "a checkpoint does not sync the databases": (
        "redo_log.c", "fdatasync(fd) != 0", "fd < 0",
    ),
    "a database gets no mark": (
        "redo_database.c", "\terror = write_all(fd, image, HEADER_BYTES, 0);",
        "\t(void)fd;\n\terror = 0;",
    ),
    "the mark is not synced": (
        "redo_database.c", "\tif (error == 0 && fsync(fd) != 0)", "\tif (fd < 0)",
    ),
    "a record's checksum is not looked at": (
        "redo_record.c", "got.checksum != header_checksum(&got, sum)", "sum == 1",
    ),
    "changes are logged without the whole block before": (
        "redo_commit.c", "file->whole[block] && log_changes", "log_changes",
    ),
    "whole blocks of an older generation count": (
        "redo_commit.c", "file->whole_generation != file->log->shared->generation",
        "file->whole_generation == 0",
    ),
    "the folder is not synced": (
        "redo_database.c", "fsync(log->folder_fd) != 0", "log->folder_fd < 0",
    ),
    "journals are not synced": (
        "spool.c", "rc == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : rc;", "rc;",
    ),
    "a journal's header is there before its pages": (
        "spool.c", "first_bytes > JOURNAL_HEADER_BYTES", "first_bytes < 0",
    ),
    "databases are not synced before their journals are deleted": (
        "redo_commit.c", "\t\t\trc = pass_sync(base, SQLITE_SYNC_NORMAL);",
        "\t\t\trc = SQLITE_OK;",
    ),
    "journals of several databases name no super-journal": (
        "redo_commit.c", "\tif (rc == SQLITE_OK && super != NULL && !super->is_file) {",
        "\tif (rc == SQLITE_OK && super != NULL && super->is_file) {",
    ),
    "a header that is torn is not mended": (
        "redo_recovery.c", "\t\treplay->fate = FATE_MEND;", "\t\tlose(replay);",
    ),
    "the log is emptied before the databases are synced": (
        "redo_recovery.c", "\terror = is_valid < 0 ? -is_valid : leave_all(log);",
        "\terror = is_valid < 0 ? -is_valid : begin_generation(log);\n\tleave_all(log);",
    ),
    "a record is replayed in one of its databases": (
        "redo_recovery.c", "\t\tif (reader.item.kind == ITEM_DATABASE) {",
        "\t\tif (reader.item.kind == ITEM_DATABASE && has_database) {\n\t\t\tbreak;\n"
        "\t\t} else if (reader.item.kind == ITEM_DATABASE) {",
    ),
}  # fmt: skip


_LINKED = Case(databases=2, has_link=True)
# Where the power is cut, if not in the usual cases.
FAULT_CASES = {
    "whole blocks of an older generation count": Case(databases=2, connections=2),
    "journals are not synced": _LINKED,
    "a journal's header is there before its pages": _LINKED,
    "databases are not synced before their journals are deleted": _LINKED,
    "journals of several databases name no super-journal": _LINKED,
}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    source = change_source(tmp_path, *FAULTS[fault])
    libraries = build_all(source, tmp_path / "build")
    with pytest.raises(AssertionError):
        usual = Case(databases=3), Case("persist", page_bytes=512)
        for number, case in enumerate([FAULT_CASES[fault]] if fault in FAULT_CASES else usual):
            folder = tmp_path / str(number)
            folder.mkdir()
            cut_the_power(libraries, folder, case, states=1500, seed=3)


def test_journal_that_comes_back_is_found(tmp_path: Path) -> None:
    source = change_source(tmp_path, *FAULTS["the folder is not synced"])
    libraries = build_all(source, tmp_path / "build")
    with pytest.raises(AssertionError):
        cut_the_power(
            libraries, tmp_path, Case(commits=8), states=300, seed=1, stock_commits=5,
            syncs_names=True,
        )  # fmt: skip


def test_dead_committer_is_looked_for(tmp_path: Path) -> None:
    """The one fault that no power cut shows: a reader beside it sees half a transaction."""
    before = "(level == SQLITE_LOCK_SHARED && !log_is_busy(file->log))"
    source = change_source(tmp_path, "redo_file.c", before, "level == SQLITE_LOCK_SHARED")
    libraries = build_all(source, tmp_path / "build")
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
    preload = f"{libraries}/joj_redo_preload.so"
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
