"""joj trace finds the commits of a program on a real disk: all of them, and no others', whoever
works on that disk beside it; and every byte is of the program that wrote it.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.places import agent_path
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests import this_process
from tests.hangs import HANG_S
from tests.live.conftest import CHECKOUT
from tests.live.loop import Loop, mounted_loop
from tests.live.tracing import rows

APP = CHECKOUT / "tests" / "live" / "commit_app.py"
MODES = ("delete", "truncate", "persist", "wal", "memory", "off")
COMMITS = 40


@pytest.fixture(
    params=["ext4", *(pytest.param(name, marks=pytest.mark.full) for name in ("xfs", "btrfs"))]
)
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Loop]:
    with mounted_loop(request.param, tmp_path) as loop:
        for folder in ("own", "other"):
            (loop.directory / folder).mkdir()
        yield loop


@contextlib.contextmanager
def neighbour(loop: Loop) -> Iterator[None]:
    """Another program that commits on the same disk meanwhile, and is ended at the end."""
    command = [sys.executable, str(APP), str(loop.directory / "other"), "1000000", "delete"]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def running_tracer(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A tracer that says that it traces."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=CHECKOUT) as tracer:
        assert tracer.stderr
        line = tracer.stderr.readline()
        while line and "joj-agent: tracing " not in line:
            line = tracer.stderr.readline()
        assert line
        yield tracer


def manifest(tables: Path) -> dict[str, Any]:
    return {row["key"]: json.loads(row["value"]) for row in rows(tables, "manifest")}


def assert_counted(program: dict[str, Any], done: dict[str, Any]) -> None:
    """Every commit, rollback and checkpoint was found, in its file."""
    assert program["commits"] == sum(each["commits"] for each in done.values())
    assert program["rollbacks"] == sum(each["rollbacks"] for each in done.values())
    # Those of a close are found too.
    assert program["checkpoints"] >= sum(each["checkpoints"] for each in done.values())
    assert (program["lost_calls"], program["syncs"]) == (0, 0)
    found = {Path(each["path"]).name: each["commits"] for each in program["database_files"]}
    files = {
        f"{mode}.db{suffix}": count
        for mode, each in done.items()
        for suffix, count in zip(("", "-second"), each["files"], strict=True)
    }
    assert found == files
    assert {each["page_bytes"] for each in program["database_files"]} == {4096}


def test_every_commit_of_a_command_is_counted_and_every_byte_is_its_writers(
    loop: Loop, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables), "--"]
    own = loop.directory / "own"
    script = f"{sys.executable} {APP} {own} {COMMITS} {' '.join(MODES)}; read word"
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as beside:
        beside.enter_context(neighbour(loop))
        command = [*trace, "sh", "-c", script]
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as tracer:
            assert tracer.stdout
            done = json.loads(tracer.stdout.readline())
            # The disk comes to rest before the tracing ends.
            beside.close()
            _, messages = tracer.communicate("go\n", timeout=HANG_S)
    assert tracer.returncode == 0, messages
    assert_counted(manifest(tables)["watch"], done)
    requests = {row["request_id"]: row for row in rows(tables, "requests")}
    transactions = {row["transaction_id"]: row for row in rows(tables, "transactions")}
    assert all(row["kind"] in ("commit", "checkpoint") for row in transactions.values())
    paths = {row["file_id"]: row["path"] for row in rows(tables, "files")}
    moved: dict[tuple[str, str], int] = {}
    for run in rows(tables, "page_runs"):
        request = requests[run["request_id"]]
        if request["operation"] == "write" and run["block_type"] == "data":
            folder = paths[run["file_id"]].split("/")[-2]
            key = (folder, request["phase"])
            moved[key] = moved.get(key, 0) + run["length_bytes"]
    # Data of a file is of the program that wrote the file, whoever sends it to the disk.
    # ext4 may send it with a commit of its journal that the neighbour's sync forced.
    ours, theirs = ("own", "commit"), ("other", "other")
    assert {ours, theirs} <= set(moved) <= {ours, theirs, ("own", "other")}
    # A request of a transaction lies in its time, and so serves this program.
    for request in requests.values():
        if request["transaction_id"] is not None:
            transaction = transactions[request["transaction_id"]]
            assert transaction["begin_ns"] <= request["queue_ns"] <= transaction["return_ns"]
            assert request["phase"] == "commit"
    # What the finder saw of databases, journals and WALs is among what was handed to write calls.
    handed = sum(row["write_bytes"] for row in rows(tables, "writers") if row["is_watched"])
    files = manifest(tables)["watch"]["database_files"]
    assert handed >= sum(each["write_bytes"] for each in files) > 0


def test_a_process_that_is_there_is_followed_and_its_answer_has_its_commits(
    loop: Loop, tmp_path: Path
) -> None:
    own = loop.directory / "own"
    # The shell is what is named: its child makes the commits.
    script = f"read word; {sys.executable} {APP} {own} {COMMITS} wal delete > {tmp_path}/done"
    out = tmp_path / "run"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, text=True) as shell:
        assert shell.stdin
        arguments = ["--device", loop.device, "--pid", shell.pid, "-o", out, "--json"]
        command = [sys.executable, "-m", "jojlab", "trace", *map(str, arguments)]
        with running_tracer(command) as tracer:
            shell.stdin.write("go\n")
            shell.stdin.close()
            answer, _ = tracer.communicate(timeout=HANG_S)
    assert tracer.returncode == 0
    done = json.loads((tmp_path / "done").read_text())
    seen = json.loads(answer)
    commits = sum(each["commits"] for each in done.values())
    assert seen["in_short"][0].startswith(f"sh made {commits} commits in ")
    assert len(seen["in_short"]) <= 6
    live = seen["live"]
    assert live["write_bytes"] > 0 < live["device_write_bytes"]
    parts = (live["device_write_bytes"], live["other_write_bytes"], live["unknown_write_bytes"])
    assert sum(parts) == live["counted_write_bytes"]
    shown = json.loads(this_process.joj("show", out, "--json").stdout)["cases"][0]
    assert_counted(shown["program"]["0"], done)
    assert shown["figures"]["transactions"] == commits
    assert shown["figures"]["bytes_per_commit"] > 0
    assert Dataset.from_runs(RunFolder.open(out)).rows(
        "SELECT count(*) AS found FROM transactions WHERE kind = 'commit'"
    ) == [{"found": commits}]


@pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)
@pytest.mark.full
def test_write_calls_and_their_bytes_are_those_that_strace_sees(loop: Loop, tmp_path: Path) -> None:
    tables, log = tmp_path / "tables", tmp_path / "strace"
    own = loop.directory / "own"
    calls = "trace=write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync"
    trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables), "--"]
    strace = ["strace", "-f", "-y", "-qq", "-e", calls, "-o", str(log)]
    app = [sys.executable, str(APP), str(own), "12", *MODES]
    with neighbour(loop):
        subprocess.run([*trace, *strace, *app], timeout=HANG_S, check=True, capture_output=True)
    line = re.compile(rf"\d+ +(\w+)\(\d+<{re.escape(str(own))}[/>].* = (\d+)$", re.MULTILINE)
    seen = line.findall(log.read_text())
    written = [int(result) for name, result in seen if "sync" not in name]
    counted = [row for row in rows(tables, "writers") if row["is_watched"]]
    assert sum(row["write_calls"] for row in counted) == len(written) > 100
    assert sum(row["write_bytes"] for row in counted) == sum(written)
    # Those of what is rolled back are in no row.
    synced = sum(row["sync_calls"] for row in rows(tables, "transactions"))
    assert 0.9 * (len(seen) - len(written)) < synced <= len(seen) - len(written)


# Has its database open, and its WAL, before the line that it waits for.
RUNNING = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute(f"PRAGMA journal_mode = {sys.argv[3]}")
c.execute(f"PRAGMA synchronous = {sys.argv[4]}")
c.execute("CREATE TABLE t(words)")
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    c.execute("INSERT INTO t VALUES(hex(randomblob(200)))")
    if number % 10 == 9:
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
"""


@pytest.mark.parametrize(
    ("mode", "synchronous", "mounts"),
    [("wal", "full", ""), ("delete", "off", "own"), ("wal", "normal", "bound")],
)
def test_commits_in_a_database_that_was_open_before_are_counted(
    loop: Loop, tmp_path: Path, mode: str, synchronous: str, mounts: str
) -> None:
    """With mounts of its own, as services have, a process is known by the root directory of its
    first call; bound elsewhere, as in a container, its path leads nowhere outside. Where nothing is
    synced, the path of its journal alone tells of a commit.
    """
    tables = tmp_path / "tables"
    own, other = loop.directory / "own", loop.directory / "other"
    database = (other if mounts == "bound" else own) / "app.db"
    words = [sys.executable, "-c", RUNNING, str(database), str(COMMITS), mode, synchronous]
    if mounts:
        bind = f"mount --bind {own} {other}; " if mounts == "bound" else ""
        words = ["unshare", "--mount", "sh", "-c", f'{bind}exec "$@"', "sh", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as app:
        assert app.stdin
        assert app.stdout
        assert app.stdout.readline() == "ready\n"
        trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables)]
        with running_tracer([*trace, "--pid", str(app.pid)]) as tracer:
            app.stdin.write("go\n")
            app.stdin.close()
            tracer.communicate(timeout=HANG_S)
    program = manifest(tables)["watch"]
    [found] = program["database_files"]
    assert (found["path"], found["commits"]) == (str(database), COMMITS)
    assert found["page_bytes"] == 4096
    # The close makes one of its own where frames are left.
    assert found["checkpoints"] >= (COMMITS // 10 if mode == "wal" else 0)
    assert found["journal_modes"] == {mode: COMMITS}


def test_everybodys_commits_are_counted_for_a_time(loop: Loop, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables)]
    own = [sys.executable, str(APP), str(loop.directory / "own"), str(COMMITS), "truncate"]
    with neighbour(loop), running_tracer([*trace, "--duration", "1000"]) as tracer:
        ended = subprocess.run(own, capture_output=True, text=True, timeout=HANG_S, check=True)
        tracer.terminate()
        tracer.communicate(timeout=HANG_S)
    done = json.loads(ended.stdout)["truncate"]
    program = manifest(tables)["watch"]
    assert program["scope"] == "everyone"
    found = {Path(each["path"]).name: each["commits"] for each in program["database_files"]}
    assert [found["truncate.db"], found["truncate.db-second"]] == done["files"]
    assert found["delete.db"] > 0


@pytest.mark.parametrize("traced", ["ext4", "btrfs"])
def test_commits_on_a_btrfs_of_another_disk_are_not_counted(tmp_path: Path, traced: str) -> None:
    """Its number is of no device: its disks are found by its mount."""
    tables = tmp_path / "tables"
    folders = [tmp_path / name for name in ("traced", "other")]
    for folder in folders:
        folder.mkdir()
    with mounted_loop(traced, folders[0]) as loop, mounted_loop("btrfs", folders[1]) as other:
        trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables)]
        app = [sys.executable, str(APP), str(other.directory), "4", "wal"]
        subprocess.run([*trace, "--", *app], timeout=HANG_S, check=True, capture_output=True)
    assert manifest(tables)["watch"]["commits"] == 0


# Opens a database so often, and says so.
HOLDER = """
import sys
files = [open(sys.argv[1]) for _ in range(int(sys.argv[2]))]
print("ready", flush=True)
sys.stdin.readline()
"""


def test_the_disk_counts_from_when_requests_have_rows(loop: Loop, tmp_path: Path) -> None:
    """The files that everybody has open are looked at meanwhile, which takes its time."""
    tables = tmp_path / "tables"
    own = [sys.executable, str(APP), str(loop.directory / "own"), "1", "truncate"]
    subprocess.run(own, timeout=HANG_S, check=True, capture_output=True)
    database = str(loop.directory / "own" / "truncate.db")
    trace = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables)]
    holder = [sys.executable, "-c", HOLDER, database, "900"]
    pipe = subprocess.PIPE
    with contextlib.ExitStack() as holders, contextlib.ExitStack() as beside:
        for _ in range(20):
            process = holders.enter_context(subprocess.Popen(holder, stdin=pipe, stdout=pipe))
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
        beside.enter_context(neighbour(loop))
        with running_tracer([*trace, "--duration", "1000"]) as tracer:
            time.sleep(1)
            # The disk comes to rest before the tracing ends: all requests are seen to complete.
            beside.close()
            tracer.send_signal(signal.SIGINT)
            _, messages = tracer.communicate(timeout=HANG_S)
    assert tracer.returncode == 128 + signal.SIGINT, messages
    assert "incomplete" not in messages
    writes = [row for row in rows(tables, "requests") if row["operation"] == "write"]
    seen = sum(row["length_bytes"] for row in writes)
    [counted] = [row["value"] for row in rows(tables, "counters") if row["name"] == "write_bytes"]
    # Between the two lie a few milliseconds.
    assert counted > 0.9 * seen > 0
