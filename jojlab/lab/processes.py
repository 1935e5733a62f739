"""Work in processes of this machine, several jobs at a time: the executor of ProcessPoolExecutor.

A worker process ends with the process that started it, and its guests with it, however that ends:
it watches a pipe whose other end only its parent has. Signals of the keyboard go to the parent.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection, wait

from jojlab.foundation.cache import Cache
from jojlab.foundation.held_signals import ENDING
from jojlab.guest.process import kill_all
from jojlab.lab.job import Job
from jojlab.lab.options import Options
from jojlab.lab.work import work

_KILL_EVERY_S = 0.1


class Processes:
    """An executor of jobs; see `processes`."""

    def __init__(self, cache: Cache, options: Options, tell: Callable[[int, str], None]) -> None:
        self._width = options.jobs
        self._job = functools.partial(_do, cache, options.timeout_s)
        # Without fork: this process has threads, and what they hold would stay held in a copy.
        self._context = multiprocessing.get_context("spawn")
        self._stages, self._to_tell = self._context.Pipe(duplex=False)
        self._lifeline, self._alive = self._context.Pipe(duplex=False)
        self._pool = self._new_pool()
        self._teller = threading.Thread(target=_pass_on, args=(self._stages, tell), daemon=True)
        self._teller.start()

    def submit(self, number: int, job: Job) -> Future[dict[str, bytes]]:
        """Have a job done; `tell` hears its stages with its number."""
        with _signals_wait():  # a process that is just starting would die of them
            try:
                return self._pool.submit(self._job, number, job)
            except BrokenProcessPool:  # one was killed, and took the others along
                self._pool = self._new_pool()
                return self._pool.submit(self._job, number, job)

    def end(self) -> None:
        """Drop the jobs that wait, kill the guests that run, and end the processes."""
        self._alive.close()
        self._pool.shutdown(cancel_futures=True)
        self._to_tell.close()
        self._teller.join()

    def _new_pool(self) -> ProcessPoolExecutor:
        given = (self._to_tell, self._lifeline)
        return ProcessPoolExecutor(self._width, self._context, _begin, given)


@contextlib.contextmanager
def processes(
    cache: Cache, options: Options, tell: Callable[[int, str], None]
) -> Iterator[Processes]:
    """Yield an executor of as many jobs at a time as asked for; what runs at the end is killed."""
    made = Processes(cache, options, tell)
    try:
        yield made
    finally:
        made.end()


def _pass_on(stages: Connection, tell: Callable[[int, str], None]) -> None:
    """Tell what the workers write, until none is left."""
    with contextlib.suppress(EOFError):
        while True:
            tell(*stages.recv())


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker process: where its stages are told.
_to_tell: Connection | None = None


def _begin(to_tell: Connection, lifeline: Connection) -> None:
    """Prepare a worker process."""
    global _to_tell
    _to_tell = to_tell
    for number in ENDING:  # The parent handles them for all.
        # A function: what is ignored would be so in the programs that it starts too.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()


def _end_with_parent(lifeline: Connection) -> None:
    """Kill guests once the parent wants no more of them: one may be about to start."""
    parent = multiprocessing.parent_process()
    assert parent
    wait([lifeline, parent.sentinel])
    while True:
        kill_all()
        if not parent.is_alive():
            os._exit(1)
        time.sleep(_KILL_EVERY_S)


def _do(cache: Cache, timeout_s: float, number: int, job: Job) -> dict[str, bytes]:
    def tell(stage: str) -> None:
        if _to_tell:
            _to_tell.send((number, stage))

    try:
        return work(cache, job, timeout_s, tell)
    finally:
        tell("done")
