"""Jobs in guests of a test's own process: it gets their errors, and can run them in threads."""

from __future__ import annotations

import json
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine, WallMachine
from jojlab.lab.job import Input, Job, Kind, canonical, virtual
from jojlab.lab.outcome import Outcome
from jojlab.lab.workers import work

TIMEOUT_S = 600.0
# Of an emulated disk: mkfs discards all of it, which takes an SD card a while.
SMALL_DISK_BYTES = 128 << 20


def case_job(image: Image, record: bytes, machine: Machine | int = 0, *inputs: Input) -> Job:
    """The job of a case's record, on a machine or on the default one of an icount_shift."""
    machine = virtual(machine) if isinstance(machine, int) else machine
    return Job(Kind.CASE, canonical(json.loads(record)), image, machine, inputs)


def run_job(
    cache: Cache, job: Job, out: Path, *, use_cached: bool = True, timeout_s: float = TIMEOUT_S
) -> Outcome:
    """Run a job, or take it from the cache, and leave its files in `out`."""
    files = cache.lookup(job.key) if use_cached and job.key else None
    outcome = Outcome(files, from_cache=True) if files else None
    if outcome is None:
        outcome = Outcome(work(cache, job, timeout_s, lambda _: None))
        if job.key:
            cache.store(job.key, dict(outcome.files))
    outcome.write(out)
    return outcome


def run_case(
    cache: Cache,
    image: Image,
    record: bytes,
    machine: Machine | int,
    out: Path,
    *,
    use_cached: bool = True,
    timeout_s: float = TIMEOUT_S,
) -> Outcome:
    """Run the case of a record in virtual time, on a machine or with an icount_shift."""
    job = case_job(image, record, machine)
    return run_job(cache, job, out, use_cached=use_cached, timeout_s=timeout_s)


def run_by_wall_clock(cache: Cache, image: Image, record: bytes, device: str, out: Path) -> Outcome:
    """Run the case of a record in real time, on a small disk."""
    job = Job(Kind.CASE, record, image, WallMachine(device, SMALL_DISK_BYTES))
    return run_job(cache, job, out)
