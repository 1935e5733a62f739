"""The goals of the benchmark of the collector."""

from __future__ import annotations

from dataclasses import replace

from bench.collector import (
    DAY_BYTES,
    DAY_SEGMENTS,
    GOAL_BYTES,
    RATES,
    SEGMENT_BYTES,
    Load,
    NameLoad,
    SegmentWrites,
    goals,
)
from bench.process_memory import Memory


def _outcomes(share: float, memory_bytes: int, disk_bytes: float) -> list[bool]:
    small, uploader_bytes = Memory(1 << 20, 0, 1 << 20), 5 << 20
    loads = {rate: Load(rate, share / 2, share / 2, lost=0, memory=small) for rate in RATES}
    # The most is that of one load, with the uploader that the names had.
    large = Memory(memory_bytes - (25 << 20), 0, 30 << 20, 10 << 20)
    loads[RATES[1]] = replace(loads[RATES[1]], memory=large)
    names_load = NameLoad(replace(small, uploader_bytes=uploader_bytes), segments=1, lost=0)
    return [met for _, met in goals(loads, names_load, SegmentWrites(6, 10_000.0, disk_bytes))]


def test_a_goal_is_missed_by_a_little() -> None:
    # A segment of a phone is larger than one of a device that does nothing.
    most = 0.01 * DAY_BYTES / DAY_SEGMENTS - SEGMENT_BYTES + 10_000
    assert _outcomes(0.0099, GOAL_BYTES, most - 1) == [True, True, True]
    assert _outcomes(0.0101, GOAL_BYTES + 1, most + 1) == [False, False, False]
