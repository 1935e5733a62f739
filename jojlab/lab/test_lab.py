"""Jobs on this machine: cached, tried again, dropped; with an image that cannot boot.

What needs a guest is tested in tests/guest and tests/command.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Collection
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, MachineError
from jojlab.lab.job import Job, Kind, Options, record_of, virtual
from jojlab.lab.lab import JobProgress, Lab
from jojlab.lab.outcome import FailedJob, Outcome
from tests.images import unbootable_image

FILES = {"manifest.parquet": b"table"}


class RecordingProgress(JobProgress):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.stages: list[tuple[int, str]] = []
        self.retried: list[tuple[int, str]] = []

    def stage(self, number: int, stage: str) -> None:
        self.stages.append((number, stage))

    def again(self, number: int, why: str) -> None:
        self.retried.append((number, why))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(Cache(tmp_path / "cache"))


def job(lab: Lab, seed: int) -> Job:
    image = unbootable_image(lab.cache.root / "image")
    return Job(Kind.CASE, record_of(Kind.CASE, {"seed": seed}), image, virtual(0))


def worker_threads() -> list[str]:
    """The threads that run jobs."""
    names = (each.name for each in threading.enumerate())
    return [name for name in names if name.startswith("job")]


def test_cached_jobs_start_no_thread(lab: Lab) -> None:
    jobs, heard = [job(lab, 1), job(lab, 2)], RecordingProgress()
    for each in jobs:
        lab.cache.store(each.key, FILES)
        assert lab.is_cached(each)
    assert list(lab.run(jobs, heard)) == [
        (number, Outcome(FILES, from_cache=True)) for number in (0, 1)
    ]
    assert heard.stages == [(0, "cached"), (1, "cached")]
    assert worker_threads() == []
    assert not Lab(lab.cache, Options(use_cache=False)).is_cached(jobs[0])


def test_a_guest_that_does_not_start_is_tried_twice_and_harms_no_other(lab: Lab) -> None:
    jobs, heard = [job(lab, 1), job(lab, 2)], RecordingProgress()
    lab.cache.store(jobs[1].key, FILES)
    outcomes = dict(lab.run(jobs, heard))
    assert outcomes[1] == Outcome(FILES, from_cache=True)
    assert isinstance(outcomes[0], FailedJob)
    assert outcomes[0].why.startswith("QEMU")
    assert [number for number, _ in heard.retried] == [0]
    assert [stage for number, stage in heard.stages if number == 0] == ["snapshot", "done"] * 2
    with pytest.raises(GuestError, match="QEMU"):
        lab.run_one(jobs[0])
    assert worker_threads() == []
    assert list(lab.cache.folder("work").iterdir()) == []


def test_a_damaged_image_has_no_outcome_and_no_snapshot(lab: Lab) -> None:
    damaged = job(lab, 1)
    damaged.image.initramfs.write_bytes(b"initramFs")
    with pytest.raises(MachineError, match="initramfs: damaged"):
        next(lab.run([damaged], RecordingProgress()))
    assert worker_threads() == []
    assert list(lab.cache.folder("snapshots").iterdir()) == []


def test_waiting_jobs_are_dropped_when_the_caller_leaves(lab: Lab) -> None:
    jobs, heard = [job(lab, number) for number in range(50)], RecordingProgress()
    lab.cache.store(jobs[0].key, FILES)
    with contextlib.closing(lab.run(jobs, heard)) as outcomes:
        assert next(outcomes)[0] == 0
    assert worker_threads() == []
    assert len({number for number, _ in heard.stages}) < len(jobs)


def test_a_signal_while_it_waits_ends_the_run(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(futures: Collection[Future[object]], *options: Any, **named: Any) -> object:
        # What wait() does too: locks that are never released if the signal is raised here.
        for future in futures:
            future._condition.acquire()
        os.kill(os.getpid(), signal.SIGINT)
        for future in futures:
            future._condition.release()
        return wait(futures, *options, **named)

    monkeypatch.setattr("jojlab.lab.lab.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(lab.run([job(lab, seed) for seed in range(4)], RecordingProgress()))
    assert worker_threads() == []
    assert list(lab.cache.folder("work").iterdir()) == []


def test_a_cluster_that_does_not_answer_is_told(lab: Lab) -> None:
    pytest.importorskip("distributed")
    there = Lab(lab.cache, Options(cluster="nowhere"))
    with pytest.raises(MachineError, match="--cluster nowhere: no scheduler of Dask answers"):
        list(there.run([job(lab, 1)], RecordingProgress()))
