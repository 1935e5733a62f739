"""The goals of the benchmark of the collector."""

from __future__ import annotations

from bench.collector import (
    DAY_BYTES,
    DAY_SEGMENTS,
    GOAL_BYTES,
    RATES,
    SEGMENT_BYTES,
    Load,
    Memory,
    Written,
    goals,
)


def _met(share: float, memory_bytes: int, disk_bytes: float) -> list[bool]:
    loads = {rate: Load(rate, share / 2, share / 2, lost=0) for rate in RATES}
    memory = Memory(memory_bytes - (30 << 20), 30 << 20)
    return [met for _, met in goals(loads, memory, Written(6, 10_000.0, disk_bytes))]


def test_a_goal_is_missed_by_a_little() -> None:
    # A segment of a phone is larger than one of a device that does nothing.
    most = 0.01 * DAY_BYTES / DAY_SEGMENTS - SEGMENT_BYTES + 10_000
    assert _met(0.0099, GOAL_BYTES, most - 1) == [True, True, True]
    assert _met(0.0101, GOAL_BYTES + 1, most + 1) == [False, False, False]
