"""Takes jobs to their outcomes: from the cache, or by an executor, each with a second try where the
machine may be why it failed. What was done is kept in the cache.

The executor is one of concurrent.futures: threads of this process, or the client of a cluster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Protocol

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, MachineError
from jojlab.foundation.lazy import duckdb, fs, load, pa, pq
from jojlab.foundation.signals import held_signals
from jojlab.lab.job import Job, Options
from jojlab.lab.outcome import FailedJob, Outcome, failure, is_transient
from jojlab.lab.workers import cluster, threads
from jojlab.trace.checksums import program

_DEFAULT = Options()
# How long a signal may be held.
_LOOK_EVERY_S = 0.2


class JobProgress:
    """A listener to the progress of numbered jobs that ignores it; a subclass passes it on."""

    def stage(self, number: int, stage: str) -> None:
        """Note that a job is "cached", waits for its "snapshot", "run"s, or is "done".

        Called by any thread.
        """

    def again(self, number: int, why: str) -> None:
        """Note that a job failed and is tried once more; called by the thread that called run."""


@dataclass(frozen=True)
class Lab:
    """The lab, which runs jobs."""

    cache: Cache
    options: Options = _DEFAULT

    def is_cached(self, job: Job) -> bool:
        """Return whether `run` would find the job in the cache; its results are not looked at."""
        return self.options.use_cache and bool(job.key) and self.cache.has(job.key)

    def run(
        self, jobs: Sequence[Job], progress: JobProgress
    ) -> Generator[tuple[int, Outcome | FailedJob], None, None]:
        """Run every job, and yield its number and what came of it, in the order in which they end.

        When it is closed, or fails, the jobs that wait are dropped and the guests of this machine
        killed: close it. A signal that asks to end interrupts neither this nor the caller's use of
        an outcome: it is raised where the next outcome is waited for.
        """
        left = []
        for number, job in enumerate(jobs):
            if known := self._look_up(job):
                progress.stage(number, "cached")
                yield number, known
            else:
                left.append(number)
        if left:
            yield from self._execute(jobs, left, progress)

    def _execute(
        self, jobs: Sequence[Job], numbers: Sequence[int], progress: JobProgress
    ) -> Generator[tuple[int, Outcome | FailedJob], None, None]:
        """Run the jobs of these numbers by the executor.

        What takes a while and needs no outcome is done while the guests run: images are hashed,
        before an outcome is looked at, and what reads captures is loaded.
        """
        second: set[int] = set()
        images = {jobs[number].image.fingerprint: jobs[number].image for number in numbers}
        # Whoever takes what is yielded is not interrupted either.
        with held_signals() as held, self._executor(progress) as executor:
            waiting = {executor.submit(number, jobs[number]): number for number in numbers}
            for image in images.values():
                image.refuse_damaged(self.cache)
            while waiting:
                held.release()
                for future in wait(waiting, _LOOK_EVERY_S, FIRST_COMPLETED).done:
                    number = waiting.pop(future)
                    error = future.exception()
                    if error and number not in second and is_transient(error):
                        second.add(number)
                        progress.again(number, failure(error))
                        waiting[executor.submit(number, jobs[number])] = number
                    else:
                        yield number, self._outcome_of_future(jobs[number], future)
                _load_readers()

    def run_one(self, job: Job) -> Outcome:
        """Run one job; raises what it failed by."""
        [(_, outcome)] = self.run([job], JobProgress())
        if isinstance(outcome, FailedJob):
            raise outcome.error
        return outcome

    def _executor(self, progress: JobProgress) -> contextlib.AbstractContextManager[Executor]:
        if self.options.cluster:
            return cluster(self.options, progress.stage)
        return threads(self.cache, self.options, progress.stage)

    def _look_up(self, job: Job) -> Outcome | None:
        if not self.options.use_cache or not (key := job.key):
            return None
        files = self.cache.lookup(key)
        return Outcome(files, from_cache=True) if files is not None else None

    def _outcome_of_future(self, job: Job, future: Future[dict[str, bytes]]) -> Outcome | FailedJob:
        try:
            files = future.result()
            if key := job.key:
                self.cache.store(key, files)
        except (JojError, OSError) as error:
            return FailedJob(error)
        except Exception as error:
            if not self.options.cluster:
                raise
            # What Dask raises where a worker lacks a package, or dies of a job again and again.
            what = f"the cluster failed: {type(error).__name__}: {error}"
            return FailedJob(MachineError(what, "install the same jojlab on every worker"))
        return Outcome(files)


def _load_readers() -> None:
    """Load DuckDB and Arrow, and hash what computes answers: a fifth of a second, once."""
    load(duckdb, pa, pq, fs)
    program()


class Executor(Protocol):
    """An executor of jobs."""

    def submit(self, number: int, job: Job) -> Future[dict[str, bytes]]:
        """Have a job done; its stages are told with its number."""
