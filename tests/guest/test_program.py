"""Programs that are not ours, in a guest: commits are found, the same bytes come twice, and what a
hostile program does harms nothing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import jobs_of
from jojlab.experiment.plan import plan
from jojlab.experiment.read import read
from jojlab.foundation.errors import ContentsTooLarge, GuestError
from jojlab.guest import run
from jojlab.guest.machine import Machine
from jojlab.lab.lab import Lab
from jojlab.model import hazards as causes
from jojlab.trace.capture import Capture
from tests.guest.experiments import run_experiment
from tests.guest.jobs import run_job
from tests.vfs.programs import SOURCE, build

# Writes a database by the module sqlite3, and then tries what it may not, and says how that went.
# The fork bomb and the endless output come last: the time limit ends them.
SCRIPT = """#!/usr/bin/python3
import os, sqlite3, sys
os.mkdir("kept")
names = sorted(os.listdir("."))
db = sqlite3.connect("app.db")
db.execute("CREATE TABLE t(x)")
for number in range(5):
    db.execute("INSERT INTO t VALUES(?)", (number,))
    db.commit()
db.execute("INSERT INTO t VALUES(9)")
db.rollback()
db.close()
def refused(what, *arguments):
    try:
        what(*arguments)
        return False
    except OSError:
        return True
print(names, os.getuid())
print(all([
    refused(os.kill, 1, 9),
    refused(open, "/proc/sys/kernel/panic", "w"),
    refused(open, "/dev/flash0"),
    refused(os.mknod, "device", 0o60600, os.makedev(259, 0)),
    refused(os.chroot, "."),
    refused(os.setuid, 0),
    refused(open, "/outside", "w"),
    refused(os.listdir, "/sys"),
    refused(os.listdir, "/results"),
]), os.path.exists("/proc/1/root/init"))
try:
    bytearray(1 << 30)
except MemoryError:
    print("no memory")
sys.stdout.flush()
if len(sys.argv) > 1:
    while True:
        try:
            os.fork()
        except OSError:
            os.write(1, b"endless output\\n")
"""

# What it holds of itself and the program leaves room for contents.
SMALL_MIB = 512
# Takes all memory of its guest: for its processes, or for what the disk keeps.
GREEDY = """#!/usr/bin/python3
import os, sys, time
if sys.argv[1] == "processes":
    while True:
        if not os.fork():
            held = b"x" * (64 << 20)
            time.sleep(1000)
with open("filled", "wb") as file:
    while True:
        file.write(b"x" * (1 << 20))
"""


def write_experiment(folder: Path, **fields: str | int) -> str:
    (folder / "app.py").write_text(SCRIPT)
    (folder / "app.py").chmod(0o755)
    (folder / "files").mkdir()
    (folder / "files" / "given").write_text("text")
    case = {"workload": "program", "program": "./app.py", "files": "files", **fields}
    lines = [f"{name} = {json.dumps(value)}" for name, value in case.items()]
    (folder / "experiment.toml").write_text(
        'question = "What does it commit?"\n[case]\n' + "\n".join(lines) + "\n"
    )
    return str(folder / "experiment.toml")


def run_captured(lab: Lab, out: Path, name: str) -> Capture:
    run = run_experiment(lab, out, name, use_cache=False)
    [(_, _, capture)] = run.captures()
    return capture


def test_a_program_is_confined_and_its_commits_are_found(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    capture = run_captured(lab, tmp_path / "out", write_experiment(folder))
    assert capture.manifest["incomplete_reasons"] == []
    program: dict[str, Any] = capture.manifest["program"]
    assert (program["exit_code"], program["commits"], program["rollbacks"]) == (0, 6, 1)
    lines = program["output"].splitlines()
    assert lines[0].endswith(" 1000")
    assert "'given'" in lines[0]
    assert "'kept'" in lines[0]
    assert lines[1:] == ["True False", "no memory"]
    kinds = [row["kind"] for row in capture.read("transactions").to_pylist()]
    assert kinds == ["commit"] * 6


@pytest.mark.full
def test_a_program_repeats_to_the_byte(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    name = write_experiment(folder)
    first, second = (run_captured(lab, tmp_path / str(number), name) for number in range(2))
    for table in sorted(first.folder.glob("*.parquet")):
        assert table.read_bytes() == (second.folder / table.name).read_bytes(), table.name


@pytest.mark.full
def test_a_program_that_never_ends_is_killed_and_the_case_says_so(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    name = write_experiment(folder, arguments="bomb", time_limit_ms=2_500)
    capture = run_captured(lab, tmp_path / "out", name)
    program = capture.manifest["program"]
    assert program["timed_out"]
    assert program["commits"] == 6
    assert len(program["output"]) <= 64 << 10 < program["output_bytes"]
    reasons = capture.manifest["incomplete_reasons"]
    assert any("did not end within time_limit_ms = 2500" in reason for reason in reasons)


@pytest.mark.full
def test_a_program_s_commits_are_found_on_ubifs(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    capture = run_captured(lab, tmp_path / "out", write_experiment(folder, filesystem="ubifs"))
    assert capture.manifest["incomplete_reasons"] == []
    program = capture.manifest["program"]
    assert (program["commits"], program["rollbacks"]) == (6, 1)


@pytest.mark.full
@pytest.mark.parametrize("filesystem", ["f2fs", "nilfs2"])
def test_every_commit_of_six_journal_modes_is_found(
    filesystem: str, lab: Lab, tmp_path: Path
) -> None:
    """As tests/live/test_live_commits.py, on filesystems that a machine's kernel may lack."""
    folder = tmp_path / "experiment"
    folder.mkdir()
    modes = "delete truncate persist wal memory off"
    name = write_experiment(
        folder, filesystem=filesystem, arguments=f". 40 {modes}", time_limit_ms=600_000
    )
    app = (Path(__file__).parents[1] / "live/commit_app.py").read_text()
    (folder / "app.py").write_text(f"#!/usr/bin/python3\n{app}")
    program = run_captured(lab, tmp_path / "out", name).manifest["program"]
    done = json.loads(program["output"])
    assert (program["exit_code"], sorted(done)) == (0, sorted(modes.split()))
    for count in ("commits", "rollbacks"):
        assert program[count] == sum(each[count] for each in done.values())
    assert program["checkpoints"] >= sum(each["checkpoints"] for each in done.values())
    assert (program["lost_calls"], program["syncs"]) == (0, 0)


@pytest.mark.full
@pytest.mark.parametrize("taken_by", ["contents", "processes"])
def test_the_error_names_what_took_all_memory_of_a_guest(
    taken_by: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_experiment(tmp_path, arguments=taken_by)
    (tmp_path / "app.py").write_text(GREEDY)
    planned = plan(read(Path(name)))
    [asked] = jobs_of(planned, images_of(planned, lab.cache), lab.cache)
    job = replace(asked.job, machine=Machine(0, SMALL_MIB))
    monkeypatch.setattr(run, "next_larger", lambda _: None)
    with pytest.raises(
        GuestError, match=r"the contents of flash0|its programs want more"
    ) as raised:
        run_job(lab.cache, job, tmp_path / "out", use_cached=False)
    assert raised.value.final
    found = raised.value
    assert isinstance(found, ContentsTooLarge) == (taken_by == "contents"), str(found)


# Commits 5 rows to a database of each setting; what makes the database is apart from them.
GUARDS = """#!/usr/bin/python3
import sqlite3
for mode, synchronous in (
    ("wal", "full"), ("wal", "normal"), ("truncate", "full"), ("truncate", "normal"),
    ("persist", "off"), ("delete", "extra"), ("memory", "full"),
):
    db = sqlite3.connect(f"{mode}-{synchronous}.db", isolation_level=None)
    db.execute("PRAGMA synchronous = extra")
    db.execute("CREATE TABLE t(x)")
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    for number in range(5):
        db.execute("INSERT INTO t VALUES(?)", (number,))
    db.close()
one = sqlite3.connect("one.db", isolation_level=None)
one.execute("ATTACH 'other.db' AS other")
for schema in ("main", "other"):
    one.execute(f"PRAGMA {schema}.synchronous = extra")
    one.execute(f"PRAGMA {schema}.journal_mode = wal")
    one.execute(f"CREATE TABLE {schema}.t(x)")
for number in range(3):
    one.executescript("BEGIN; INSERT INTO main.t VALUES(1); INSERT INTO other.t VALUES(1); COMMIT")
"""


@pytest.mark.full
def test_syncs_that_a_programs_commits_lack_are_seen(lab: Lab, tmp_path: Path) -> None:
    """Each setting leaves its lack in the calls, and no other: docs/commits.md."""
    name = write_experiment(tmp_path)
    (tmp_path / "app.py").write_text(GUARDS)
    run = run_experiment(lab, tmp_path / "run", name)
    [(_, _, capture)] = run.captures()
    modes: dict[str, Any] = capture.manifest["program"]["journal_modes"]
    lacks = ("end_unsynced", "journal_exposed", "database_unsynced", "several_databases")
    assert {mode: [counts[name] for name in lacks] for mode, counts in modes.items()} == {
        "wal": [5, 0, 0, 6],  # of synchronous = normal; two WALs of each of three transactions
        "truncate": [5, 5, 0, 0],  # NORMAL syncs no truncated journal
        "persist": [5, 5, 5, 0],
        "delete": [0, 0, 0, 0],
        "none": [0, 0, 0, 0],
    }
    assert (modes["none"]["commits"], modes["persist"]["commits"]) == (5, 5)
    (case,) = summarise(run).cases
    kinds = {(each.kind, each.cause) for each in case.hazards}
    assert {cause for _, cause in kinds} == {
        causes.UNSYNCED_FRAMES,
        causes.UNSYNCED_END,
        causes.EXPOSED_JOURNAL,
        causes.UNSYNCED_DATABASE,
        causes.NO_JOURNAL_FILE,
        causes.SEVERAL_WALS,
    }
    assert not case.unknowns


# Prints how long its WAL is when it has closed its database.
WRITER = """#!/usr/bin/python3 -I
import os, sqlite3
db = sqlite3.connect("app.db", isolation_level=None)
db.execute("PRAGMA journal_mode = wal")
db.execute("CREATE TABLE t(x)")
db.close()
print(os.stat("app.db-wal").st_size)
"""


@pytest.mark.full
def test_a_library_before_sqlite_is_before_it_in_the_guest(lab: Lab, tmp_path: Path) -> None:
    """An unchanged program has a WAL that is kept and filled: docs/cure.md."""
    name = write_experiment(tmp_path, environment="LD_PRELOAD=/app/joj_wal_preload.so")
    (tmp_path / "app.py").write_text(WRITER)
    build(SOURCE, tmp_path / "files", "joj_wal_preload")
    program = run_captured(lab, tmp_path / "run", name).manifest["program"]
    assert (program["exit_code"], program["output"]) == (0, f"{64 << 10}\n")
