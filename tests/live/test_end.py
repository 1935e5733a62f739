"""However a live run ends, the directory is as it was before."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.trace.run_folder import RunFolder
from tests.hangs import HANG_S, await_end
from tests.live.conftest import Bench

# Hours, unless it is ended.
LONG = ("--transactions=1000000", "--interval-us=100000", "--synchronous=off")


def wait_for_database(bench: Bench) -> Path:
    """Wait until the workload has begun, and return its database."""
    for _ in range(600):
        if found := list(bench.directory.glob("joj-bench-*/main.db")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("it never began")


def child_of(pid: int) -> int:
    """The one child of a process."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize("whole_group", [True, False])
def test_a_signal_leaves_nothing_behind(
    bench: Bench, number: signal.Signals, code: int, whole_group: bool
) -> None:
    with bench.start("sqlite", bench.directory, *LONG) as joj:
        wait_for_database(bench)
        (os.killpg if whole_group else os.kill)(joj.pid, number)
        _, err = await_end(joj)
    assert joj.returncode == code, err
    assert "Traceback" not in err
    assert bench.names() == []


def test_runs_that_had_ended_are_kept_and_named(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ("file", bench.directory, "--transactions=3", "--repeat=1000")
    with bench.start(*asked, "--out", out) as joj:
        while not (out / "run.json").exists() or not RunFolder.open(out).cases[0].captures:
            assert joj.poll() is None
            time.sleep(0.05)
        joj.send_signal(signal.SIGINT)
        _, err = await_end(joj)
    assert joj.returncode == 130
    assert f"had ended: joj show {out}" in err, err
    assert next(RunFolder.open(out).captures())[1] == 1
    assert bench.names() == []


def test_a_joj_that_is_killed_takes_its_agent_with_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, temporary = Cache(tmp_path / "cache"), tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("JOJ_CACHE", str(own.root))
    monkeypatch.setenv("TMPDIR", str(temporary))
    with bench.start("sqlite", bench.directory, *LONG) as joj:
        wait_for_database(bench)
        agent = os.pidfd_open(child_of(joj.pid))
        os.kill(joj.pid, signal.SIGKILL)
    readable, _, _ = select.select([agent], [], [], HANG_S)
    os.close(agent)
    assert readable
    assert bench.names() == []
    # Its tables are removed with the next folder that is made beside them.
    with own.work_dir() as mine:
        assert list(own.folder("work").iterdir()) == [mine]
    assert not list(temporary.iterdir())


def test_a_workload_that_is_killed_leaves_nothing_behind(bench: Bench) -> None:
    with bench.start("sqlite", bench.directory, *LONG) as joj:
        wait_for_database(bench)
        os.kill(child_of(child_of(joj.pid)), signal.SIGKILL)
        _, err = await_end(joj)
    assert joj.returncode == 3
    assert "died of signal 9" in err
    assert bench.names() == []


def test_a_bench_names_the_folder_that_a_killed_one_left(bench: Bench) -> None:
    with bench.start("sqlite", bench.directory, *LONG) as joj:
        left = wait_for_database(bench).parent
        os.kill(child_of(joj.pid), signal.SIGKILL)
        await_end(joj)
    assert joj.returncode == 3
    assert bench.names() == [left.name]
    answer = bench.run("sqlite", bench.directory, "--transactions=3")
    assert answer.returncode == 0
    assert f"remove it with: rm -r {left}" in answer.stderr
    assert bench.names() == [left.name]


@pytest.mark.parametrize("kind", ["sqlite", "file"])
def test_a_disk_that_becomes_full_is_told_and_nothing_is_left(small: Bench, kind: str) -> None:
    asked = {
        "sqlite": ("--value-bytes=4000", "--transactions=700", "--interval-us=3000"),
        "file": (
            "--access=append",
            "--file-bytes=3145000",
            "--transactions=999000",
            "--record-bytes=3",
            "--sync-mode=none",
        ),
    }[kind]
    with small.start(kind, small.directory, *asked) as joj:
        while joj.poll() is None and not list(small.directory.glob("joj-bench-*/*")):
            time.sleep(0.001)
        # It stands still meanwhile, and cannot come to its end before.
        os.killpg(joj.pid, signal.SIGSTOP)
        filler = small.directory / "filler"
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], check=False, capture_output=True
        )
        os.killpg(joj.pid, signal.SIGCONT)
        _, err = await_end(joj)
    assert joj.returncode == 3, err
    assert f"the filesystem of {small.directory} became full" in err
    assert small.names() == ["filler"]


def test_too_little_room_is_told_before_anything_is_written(small: Bench) -> None:
    for arguments in (
        ("file", small.directory, "--file-bytes=5000000"),
        ("sqlite", small.directory, "--initial-rows=10000", "--value-bytes=1000"),
        ("file", small.directory, "--workload=file-metadata", "--transactions=200"),
    ):
        answer = small.run(*arguments)
        assert answer.returncode == 3, answer.stderr
        assert "not enough room" in answer.stderr
        assert small.names() == []
