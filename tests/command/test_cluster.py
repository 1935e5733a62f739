"""--cluster: a scheduler and two workers on this machine, each with a cache of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.conftest import Lab
from tests.hangs import HANG_S, await_end

pytestmark = pytest.mark.full

# Of two cases each of the two workers gets one.
ASKED = (
    "run", "first-look", "--no-cache", "--set=transactions=7", "--set=seeds=1",
    "--set=filesystem=ext4", "--set=regime=fresh", "--set=sync_call=fsync",
)  # fmt: skip


@contextlib.contextmanager
def dask_process(log: Path, cache: Path, lab: Lab, *command: str) -> Iterator[Path]:
    """A process of Dask with its own cache, until the end of the block; yields what it says."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            # It ends with the tests even if these are killed.
            ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "dask", *command],
            cwd=log.parent,
            env=lab.environment({"JOJ_CACHE": str(cache)}),
            stdout=stream,
            stderr=stream,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


def await_words(log: Path, words: str) -> str:
    """The rest of the line with these words, as soon as it is there."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if words in line:
                return line.partition(words)[2].strip()
        time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def workers(lab: Lab, tmp_path: Path) -> tuple[Path, Path]:
    """The caches of the two workers; the second has the snapshot already, as after a run."""
    first, second = tmp_path / "cache-1", tmp_path / "cache-2"
    second.mkdir()
    (second / "snapshots").symlink_to(lab.cache / "snapshots")
    return first, second


@pytest.fixture
def cluster(lab: Lab, tmp_path: Path, workers: tuple[Path, Path]) -> Iterator[str]:
    """The address of a scheduler with two workers, of one guest at a time each."""
    with contextlib.ExitStack() as stack:

        def start(name: str, cache: Path, *command: str) -> Path:
            log = tmp_path / f"{name}.log"
            return stack.enter_context(dask_process(log, cache, lab, *command))

        here = ("--host", "127.0.0.1", "--no-dashboard")
        log = start("scheduler", tmp_path / "none", "scheduler", *here, "--port", "0")
        address = await_words(log, "Scheduler at:")
        for number, cache in enumerate(workers):
            one = ("--nthreads", "1", "--no-nanny")
            local = ("--local-directory", str(tmp_path / f"scratch-{number}"))
            log = start(f"worker-{number}", cache, "worker", address, *here, *one, *local)
            await_words(log, "Registered to:")
        yield address


def test_a_cluster_computes_the_same_and_ends_with_the_run(
    lab: Lab, cluster: str, workers: tuple[Path, Path], finished_run: Path
) -> None:
    there = lab.joj(*ASKED, "--out=there", f"--cluster={cluster}")
    assert there.returncode == 0, there.stderr
    # One of the two cases is that of the finished run, which this machine computed.
    tables = sorted((finished_run / "captures").rglob("*.parquet"))
    assert len(tables) > 2
    of_case = lab.folder / "there" / "captures" / "wal" / "seed-1"
    for table in tables:
        assert table.read_bytes() == (of_case / table.name).read_bytes(), table.name
    for cache in workers:
        # The kernel and the initramfs came by their hashes; nothing else of the image is there.
        assert len(os.listdir(cache / "inputs")) == 2
        assert not (cache / "images").exists()
        assert not (cache / "results").exists()
        assert os.listdir(cache / "work") == []
    assert len(os.listdir(workers[0] / "snapshots")) == 1
    # What a cluster computed is in the cache here: no guest ends within the time.
    costs = ("bill", "--transactions=13", "--json")
    billed = lab.joj(*costs, f"--cluster={cluster}")
    assert billed.returncode == 0, billed.stderr
    assert lab.joj_here(*costs, "--timeout=1").stdout == billed.stdout
    for number in (signal.SIGINT, signal.SIGKILL):
        joj = lab.start(*ASKED, "--set=transactions=1000", f"--cluster={cluster}")
        await_guests(workers, 2)
        os.kill(joj.pid, number)
        await_guests(workers, 0)
        await_end(joj)


def guests_of(caches: tuple[Path, Path]) -> int:
    """Return how many QEMUs work in one of these caches."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            place = os.readlink(folder / "cwd")
            is_guest = (folder / "comm").read_text().startswith("qemu")
            count += is_guest and any(place.startswith(str(cache)) for cache in caches)
    return count


def await_guests(caches: tuple[Path, Path], wanted: int) -> None:
    deadline = time.monotonic() + HANG_S
    while guests_of(caches) != wanted:
        assert time.monotonic() < deadline, f"{guests_of(caches)} guests, not {wanted}"
        time.sleep(0.1)


def test_cases_that_cannot_run_on_a_cluster_are_refused(lab: Lab) -> None:
    nowhere = lab.joj_here(*ASKED, "--cluster=tcp://127.0.0.1:1")
    assert nowhere.returncode == 3
    assert "no scheduler of Dask answers" in nowhere.stderr
    timed = lab.joj_here("run", "polled-io-uring", "--cluster=tcp://127.0.0.1:1")
    assert timed.returncode == 2
    assert "measured on this machine alone" in timed.stderr
