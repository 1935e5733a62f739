"""Tests what is left of databases of each VFS when the power goes, or a log of joj_redo has any
bytes, and that planted faults are found.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.vfs.conftest import build_libraries
from tests.vfs.disk_states import Call, Disk, read_calls, write_state
from tests.vfs.programs import SOURCE, change_source, preload_of, python
from tests.vfs.transactions import Case, assert_right, reader, write

_WAL = Case("wal", vfs="wal")
CASES = [
    Case(),
    Case(databases=3),
    Case("truncate", databases=2, page_bytes=1024, cache_pages=5),
    Case("persist", page_bytes=512, cache_pages=5),
    Case("delete", databases=2, page_bytes=65536),
    Case(databases=2, connections=2),
    Case(databases=2, has_link=True),
    Case(has_changes=True),
    Case(databases=2, has_changes=True),
    Case(databases=2, folders=2),
    Case("truncate", databases=3, folders=3, page_bytes=1024, cache_pages=5),
    Case(databases=3, folders=2, connections=2),
    Case(databases=2, folders=2, has_changes=True),
    _WAL,
    Case("wal", vfs="wal", page_bytes=1024, connections=2),
]


# Has the databases open while others die, who are no first members of the log then. Reads each one
# for each line.
MEMBER = """
    import sqlite3, sys
    db = sqlite3.connect("main.db", isolation_level=None, timeout=60)
    for name, path in zip(("main", "b", "c"), sys.argv[1:]):
        if name != "main":
            db.execute(f"ATTACH '{path}' AS {name}")
        db.execute(f"CREATE TABLE {name}.own(x)")
    print("member", flush=True)
    for line in sys.stdin:
        for name in ("main", "b", "c")[: len(sys.argv) - 1]:
            db.execute(f"SELECT * FROM {name}.last").fetchall()
        print("seen", flush=True)
"""


@contextmanager
def member(libraries: Path, folder: Path, case: Case, log: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the databases open until the end of the block."""
    preload = preload_of(libraries, "call_log", f"joj_{case.vfs}_preload")
    with subprocess.Popen(
        python(preload, MEMBER, *case.paths), cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "CALLS_FOLDER": str(folder), "CALLS_LOG": str(log)},
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "member\n"
        yield process


def log_deaths(
    libraries: Path, folder: Path, case: Case, log: Path, draw: random.Random, *, has_member: bool
) -> None:
    """Run the program some times until it dies, alone or beside a process that does not."""
    assert write(libraries, folder, replace(case, commits=3), CALLS_LOG=str(log)).returncode == 0
    beside = member(libraries, folder, case, log) if has_member else nullcontext()
    with beside:
        for _ in range(5):
            death = str(draw.randrange(20, 120))
            died = write(libraries, folder, case, CALLS_LOG=str(log), CALLS_DEATH=death)
            assert died.returncode == -signal.SIGKILL, died.stderr


def cut_the_power(
    libraries: Path, folder: Path, case: Case, states: int, seed: int, *, stock_commits: int = 0,
    syncs_names: bool = False, has_member: bool | None = None,
) -> None:  # fmt: skip
    """Look at states that power cuts leave of the program; some lose the power twice.

    With stock_commits, stock SQLite has written to the databases before; the power is cut after
    the first commit that is not its own. Unless has_member is None, programs have died before.
    """
    disk_folder, log, draw = folder / "disk", folder / "log", random.Random(seed)
    begin = 0
    if has_member is not None:
        log_deaths(libraries, disk_folder, case, log, draw, has_member=has_member)
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
    disk = Disk({}, syncs_names=syncs_names)
    look_at_states(libraries, disk_folder, case, disk, calls, begin, states, draw)


def look_at_states(
    libraries: Path, disk_folder: Path, case: Case, disk: Disk, calls: list[Call], begin: int,
    states: int, draw: random.Random,
) -> None:  # fmt: skip
    """Cut the power so many times behind the call `begin` or a later one."""
    acknowledged, at = -1, 0
    with reader(libraries, case.vfs) as looking:
        for point in sorted(draw.randrange(begin, len(calls) + 1) for _ in range(states)):
            for call in calls[at:point]:
                if call.name != "acknowledged":
                    disk.see(call)
                elif call.kind == "w":
                    acknowledged = int(call.data)
            at = point
            state, first = disk.cut(draw, torn=True), draw.choice(range(case.databases))
            if draw.random() < 0.2:
                state = cut_again(libraries, disk_folder, case, state, draw)
            write_state(disk_folder, state)
            is_stock_first = draw.random() < 0.5
            views = looking.read(case, disk_folder, is_stock_first=is_stock_first, first=first)
            assert_right(views, acknowledged)


def look(libraries: Path, folder: Path, case: Case, path: str, log: Path) -> None:
    """Open and close a database, which recovers it."""
    code = f"import sqlite3\nsqlite3.connect('{path}').execute('SELECT 1 FROM sqlite_schema')"
    preload = preload_of(libraries, "call_log", f"joj_{case.vfs}_preload")
    subprocess.run(
        python(preload, code), cwd=folder, capture_output=True, check=False, timeout=HANG_S,
        env={**os.environ, "CALLS_FOLDER": str(folder), "CALLS_LOG": str(log)},
    )  # fmt: skip


def cut_again(
    libraries: Path, folder: Path, case: Case, state: dict[str, bytes], draw: random.Random
) -> dict[str, bytes]:
    """Return a state that a power cut leaves of the recovery of one."""
    write_state(folder, state)
    log = folder.with_name("recovery")
    log.unlink(missing_ok=True)
    look(libraries, folder, case, draw.choice(case.paths), log)
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


@pytest.mark.parametrize("has_member", [False, True])
@pytest.mark.parametrize("case", [Case(databases=3), _WAL], ids=str)
def test_power_cuts_after_deaths_lose_no_acknowledged_commit(
    libraries: Path, tmp_path: Path, case: Case, has_member: bool
) -> None:
    cut_the_power(libraries, tmp_path, case, states=50, seed=1, has_member=has_member)


def cut_recoveries(
    libraries: Path, folder: Path, case: Case, deaths: range, states: int, *, has_member: bool
) -> None:
    """Look at states that power cuts leave of the recovery after each of the deaths, by a process
    that had the databases open, or by the next one."""
    draw = random.Random(1)
    for death in deaths:
        disk, log = folder / str(death) / "disk", folder / str(death) / "log"
        done = write(libraries, disk, replace(case, commits=3), CALLS_LOG=str(log))
        assert done.returncode == 0, done.stderr
        with member(libraries, disk, case, log) if has_member else nullcontext() as beside:
            died = write(libraries, disk, case, CALLS_LOG=str(log), CALLS_DEATH=str(death))
            assert died.returncode == -signal.SIGKILL, died.stderr
            begin = len(read_calls(log))
            if beside is None:
                look(libraries, disk, case, draw.choice(case.paths), log)
            else:
                assert beside.stdin
                assert beside.stdout
                beside.stdin.write("\n")
                beside.stdin.flush()
                assert beside.stdout.readline() == "seen\n"
            calls = read_calls(log)
        look_at_states(libraries, disk, case, Disk({}), calls, begin, states, draw)


@pytest.mark.parametrize("has_member", [False, True])
@pytest.mark.parametrize("folders", [1, 2])
def test_power_cut_in_a_recovery_from_a_death_loses_no_commit(
    libraries: Path, tmp_path: Path, folders: int, has_member: bool
) -> None:
    case = Case(databases=2, folders=folders)
    cut_recoveries(libraries, tmp_path, case, range(19, 27), 25, has_member=has_member)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_more_power_cuts_lose_no_acknowledged_commit(
    libraries: Path, tmp_path: Path, case: Case, seed: int
) -> None:
    cut_the_power(libraries, tmp_path, case, states=400, seed=seed)


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


def test_log_that_names_the_file_of_its_own_memory_changes_nothing_there(tmp_path: Path) -> None:
    """The file is an input that libFuzzer found: it wrote over the count of databases."""
    done = fuzz(SOURCE, tmp_path, str(Path(__file__).parent / "log_of_own_memory"))
    assert done.returncode == 0, done.stderr[-4000:]


BELIEFS = {
    "how long an item is": ("redo_format.c", "item->length_bytes > MAX_PAYLOAD_BYTES ||", ""),
    "how many ids were lost": ("redo_format.c", "header->lost_count <= MAX_LOST &&", ""),
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
        "redo_format.c", "got.checksum != header_checksum(&got, sum)", "sum == 1",
    ),
    "changes are logged without the whole block before": (
        "redo_commit.c", "file->states[block].is_whole &&", "",
    ),
    "whole blocks of an older generation count": (
        "redo_commit.c", "file->whole_generation == file->log->shared->generation",
        "file->whole_generation != 0",
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
        "redo_stock.c", "rc == SQLITE_OK ? LOWER(file, xSync, SQLITE_SYNC_NORMAL) : rc;", "rc;",
    ),
    "journals of several databases name no super-journal": (
        "redo_stock.c", "\tif (rc == SQLITE_OK && super != NULL && !super->is_file) {",
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
    "a prepared record is not synced": (
        "redo_commit.c", "append_record(log, &writer, kind, must_sync)",
        "append_record(log, &writer, kind, must_sync && at == 0)",
    ),
    "the coordinator's record is not synced": (
        "redo_commit.c", "append_record(log, &writer, kind, must_sync)",
        "append_record(log, &writer, kind, must_sync && at > 0)",
    ),
    "each log commits for itself": (
        "redo_commit.c", "at > 0 ? RECORD_PREPARED : RECORD_COMMIT", "RECORD_COMMIT",
    ),
    "a coordinator that was emptied has no outcomes": (
        "redo_log.c", "\tmemcpy(block.header.outcomes, shared->outcomes,",
        "\tmemset(block.header.outcomes, 0,",
    ),
    "a recovery forgets the outcomes before": (
        "redo_recovery.c", "\tmemcpy(shared->outcomes, header.outcomes,",
        "\tmemset(shared->outcomes, 0,",
    ),
    "a recovery passes the outcomes in records over": (
        "redo_recovery.c", "\t*place = (struct outcome){key, reader->item.value};\n", "",
    ),
    "doubt counts as a commit": (
        "redo_member.c", "\tdoubt->is_committed = 0;", "\tdoubt->is_committed = 1;",
    ),
    "doubt counts as none": (
        "redo_recovery.c", "if (error == 0 && !doubt->is_committed)", "if (error == 0)",
    ),
    "the name of a new WAL is not synced": ("wal_vfs.c", "wal->must_sync_name || ", ""),
    "frames of a WAL are not synced": ("wal_vfs.c", "rc = fdatasync(wal->sync_fd);", "rc = 0;"),
}  # fmt: skip


_LINKED = Case(databases=2, has_link=True)
_FOLDERS = Case(databases=2, folders=2)
# Where the power is cut, if not in the usual cases.
FAULT_CASES = {
    "whole blocks of an older generation count": Case(databases=2, connections=2),
    "journals are not synced": _LINKED,
    "a journal's header is there before its pages": _LINKED,
    "databases are not synced before their journals are deleted": _LINKED,
    "journals of several databases name no super-journal": _LINKED,
    "a prepared record is not synced": _FOLDERS,
    "the coordinator's record is not synced": _FOLDERS,
    "each log commits for itself": _FOLDERS,
    "a coordinator that was emptied has no outcomes": _FOLDERS,
    "a recovery forgets the outcomes before": _FOLDERS,
    "a recovery passes the outcomes in records over": _FOLDERS,
    "doubt counts as a commit": _FOLDERS,
    "doubt counts as none": _FOLDERS,
    "the name of a new WAL is not synced": _WAL,
    "frames of a WAL are not synced": _WAL,
}


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    source = change_source(tmp_path, *FAULTS[fault])
    libraries = build_libraries(source, tmp_path / "build")
    with pytest.raises(AssertionError):
        usual = Case(databases=3), Case("persist", page_bytes=512)
        for number, case in enumerate([FAULT_CASES[fault]] if fault in FAULT_CASES else usual):
            folder = tmp_path / str(number)
            folder.mkdir()
            cut_the_power(libraries, folder, case, states=1500, seed=3)


def test_record_of_a_dead_process_that_is_not_synced_is_found(tmp_path: Path) -> None:
    before = "\t\terror = sync_log(log);\n\treturn error == 0 ? replay_record"
    after = "\t\terror = 0;\n\treturn error == 0 ? replay_record"
    source = change_source(tmp_path, "redo_recovery.c", before, after)
    libraries = build_libraries(source, tmp_path / "build")
    with pytest.raises(AssertionError):
        cut_recoveries(libraries, tmp_path, Case(databases=2), range(20, 21), 200, has_member=False)


def test_journal_that_comes_back_is_found(tmp_path: Path) -> None:
    source = change_source(tmp_path, *FAULTS["the folder is not synced"])
    libraries = build_libraries(source, tmp_path / "build")
    with pytest.raises(AssertionError):
        cut_the_power(
            libraries, tmp_path, Case(commits=8), states=300, seed=1, stock_commits=5,
            syncs_names=True,
        )  # fmt: skip
