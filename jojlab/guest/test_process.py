"""Tests how long joj waits for a guest, and for a program of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jojlab.foundation.errors import GuestError
from jojlab.guest.process import console_tail, run_to_end, wait_for_any

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


def test_a_program_runs_to_its_end_or_to_its_limit(tmp_path: Path) -> None:
    ending = [sys.executable, "-c", "print('the last line'); raise SystemExit(7)"]
    assert asyncio.run(run_to_end(ending, tmp_path, 60)) == 7
    assert console_tail(tmp_path) == "the last line"
    words = f"while True: pass  # {tmp_path}"
    with pytest.raises(GuestError, match=f"was not done after {LIMIT_S} s"):
        asyncio.run(run_to_end([sys.executable, "-c", words], tmp_path, LIMIT_S))
    left = subprocess.run(["pgrep", "-f", words], stdout=subprocess.PIPE, check=False)
    assert not left.stdout
