"""Tests how long joj waits for a guest."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from jojlab.guest.process import wait_for_any

LIMIT_S = 0.4
SPINS = (sys.executable, "-c", "while True: pass")


def test_time_without_a_processor_does_not_count() -> None:
    """Four processes share one processor: the limit is the time that one of them had."""
    one = min(os.sched_getaffinity(0))
    spinning = [subprocess.Popen(["taskset", "-c", str(one), *SPINS]) for _ in range(4)]
    try:
        process_id = spinning[0].pid
        before_s = _running_s(process_id)
        asyncio.run(_never(process_id))
        assert _running_s(process_id) - before_s > LIMIT_S / 2
    finally:
        for process in spinning:
            process.kill()
            process.wait()


async def _never(process_id: int) -> None:
    never = asyncio.get_running_loop().create_future()
    await wait_for_any((never,), process_id, LIMIT_S)
    assert not never.done()


def _running_s(process_id: int) -> float:
    return int(Path(f"/proc/{process_id}/schedstat").read_text().split()[0]) / 1e9
