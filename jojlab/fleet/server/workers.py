"""Asks the worker processes (jojlab/fleet/store/worker.py), and replaces those that die."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from jojlab.fleet.store.segment import Checked, Refused

# By the clock on the wall, which a busy machine lets pass; a worker ends itself by its own clock.
CHECK_SECONDS = 300.0
DIED = "killed-its-worker"


class Workers:
    """Some worker processes; `check` waits for a free one."""

    def __init__(self, count: int) -> None:
        self._free: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        for _ in range(count):
            self._free.put_nowait(None)  # started when it is needed
        self._running: set[asyncio.subprocess.Process] = set()

    async def check(self, segment: Path, folder: Path) -> Checked:
        """Have a segment checked and its tables put into `folder`.

        Raises Refused, OSError where the worker could not start or had no room, and TimeoutError
        where no answer came. A worker may die for a reason that is none of the segment's, which has
        two.
        """
        answer = await self._answer(segment, folder) or await self._answer(segment, folder)
        if answer is None:
            raise Refused(DIED, "the workers that checked it died")
        if "errno" in answer:
            raise OSError(answer["errno"], answer["detail"])
        if "reason" in answer:
            raise Refused(answer["reason"], answer["detail"])
        return Checked(**answer)

    async def _answer(self, segment: Path, folder: Path) -> dict[str, Any] | None:
        """Return what a worker says; None if it died."""
        worker = await self._free.get()
        try:
            if worker is None or worker.returncode is not None:
                await self._end(worker)
                worker = await self._start()
            return await _ask(worker, {"segment": str(segment), "folder": str(folder)})
        except BaseException:  # it may answer yet: what it says belongs to nobody
            await self._end(worker)
            worker = None
            raise
        finally:
            self._free.put_nowait(worker)

    async def close(self) -> None:
        """End the workers."""
        for worker in list(self._running):
            await self._end(worker)

    async def _start(self) -> asyncio.subprocess.Process:
        # Arrow's own allocators reserve address space, which the limit counts.
        settings = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jojlab.fleet.store.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=os.environ | settings,
            start_new_session=True,  # Ctrl-C is the server's
        )
        self._running.add(worker)
        try:
            if await _line_of(worker) is None:
                raise OSError(errno.ECHILD, "a worker that checks segments did not start")
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: asyncio.subprocess.Process | None) -> None:
        if worker is None:
            return
        self._running.discard(worker)
        if worker.returncode is None:
            worker.kill()
            await worker.wait()


async def _ask(
    worker: asyncio.subprocess.Process, question: dict[str, str]
) -> dict[str, Any] | None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(question).encode() + b"\n")
    with suppress(BrokenPipeError, ConnectionResetError):
        await worker.stdin.drain()
    return await _line_of(worker)


async def _line_of(worker: asyncio.subprocess.Process) -> dict[str, Any] | None:
    """Return what it says next; None if it died."""
    assert worker.stdout is not None
    async with asyncio.timeout(CHECK_SECONDS):
        line = await worker.stdout.readline()
    if not line.endswith(b"\n"):
        await worker.wait()
        return None
    answer: dict[str, Any] = json.loads(line)
    return answer
