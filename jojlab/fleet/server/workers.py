"""Asks the worker processes (jojlab/fleet/store/worker.py), and replaces those that die.

Threads ask, and wait for the answer themselves: an event loop would come round some six times more
for each segment.
"""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from jojlab.fleet.store.segment import BadSegment, CheckedSegment

# By the clock on the wall, which a busy machine lets pass; a worker ends itself by its own clock.
CHECK_SECONDS = 300.0
DIED = "killed-its-worker"

_Worker = subprocess.Popen[bytes]


class Workers:
    """Some worker processes, which threads share; `check` waits for a free one."""

    def __init__(self, count: int) -> None:
        self._free: SimpleQueue[_Worker | None] = SimpleQueue()
        for _ in range(count):
            self._free.put(None)  # started when it is needed
        self._running: set[_Worker] = set()
        self._is_closed = False

    def check(self, segment: Path, folder: Path) -> CheckedSegment:
        """Have a segment checked and its tables put into `folder`.

        Raises BadSegment, OSError where the worker could not start or had no room, and TimeoutError
        where no answer came. A worker may die for a reason that is none of the segment's, which has
        two.
        """
        answer = self._answer(segment, folder) or self._answer(segment, folder)
        if answer is None:
            raise BadSegment(DIED, "the workers that checked it died")
        if "errno" in answer:
            raise OSError(answer["errno"], answer["detail"])
        if "reason" in answer:
            raise BadSegment(answer["reason"], answer["detail"])
        return CheckedSegment(**answer)

    def _answer(self, segment: Path, folder: Path) -> dict[str, Any] | None:
        """Return what a worker says; None if it died."""
        worker = self._free.get()
        try:
            if worker is None or worker.poll() is not None:
                self._end(worker)
                worker = self._start()
            return _ask(worker, {"segment": str(segment), "folder": str(folder)})
        except BaseException:  # it may answer yet: what it says belongs to nobody
            self._end(worker)
            worker = None
            raise
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End the workers; who waits for one is told that it could not start."""
        self._is_closed = True
        for worker in list(self._running):
            worker.kill()
            worker.wait()

    def _start(self) -> _Worker:
        # Arrow's own allocators reserve address space, which the limit counts.
        settings = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        worker = subprocess.Popen(
            (sys.executable, "-m", "jojlab.fleet.store.worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | settings,
            start_new_session=True,  # Ctrl-C is the server's
        )
        self._running.add(worker)
        try:
            if self._is_closed or _line_of(worker) is None:
                raise OSError(errno.ECHILD, "a worker that checks segments did not start")
        except BaseException:
            self._end(worker)
            raise
        return worker

    def _end(self, worker: _Worker | None) -> None:
        if worker is None:
            return
        self._running.discard(worker)
        worker.kill()
        with worker:  # closes its pipes and waits for it
            pass


def _ask(worker: _Worker, question: dict[str, str]) -> dict[str, Any] | None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        os.write(worker.stdin.fileno(), json.dumps(question).encode() + b"\n")
    return _line_of(worker)


def _line_of(worker: _Worker) -> dict[str, Any] | None:
    """Return what it says next, which it writes at once; None if it died."""
    assert worker.stdout is not None
    poll = select.poll()
    poll.register(worker.stdout, select.POLLIN)
    if not poll.poll(CHECK_SECONDS * 1000):
        raise TimeoutError
    line = worker.stdout.readline()
    if not line.endswith(b"\n"):
        worker.wait()
        return None
    answer: dict[str, Any] = json.loads(line)
    return answer
