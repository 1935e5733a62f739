"""The arithmetic of the benchmark of tracers, and what the kernel counts of programs of no use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.bpf import Runs, empty_programs, runs_of
from bench.tracer import Row, Turn, goals, quartiles
from bench.watchers import Reading, WatchCost


def _row(watcher: str, load: str, **figures: float) -> Row:
    given = {"iops": 120_000.0, "slowdown": 0.01, "bpf_ns": 400.0, "process_ns": 2000.0} | figures
    lost = int(given.pop("lost", 0))
    return Row(watcher, load, slowdown_range=(0.0, 0.02), lost=lost, programs=[], **given)


def test_quartiles_of_one_and_of_five_numbers() -> None:
    assert quartiles([0.5]) == (0.5, 0.5, 0.5)
    assert quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == (2.0, 3.0, 4.0)


def test_a_goal_is_missed_by_a_little() -> None:
    empty = _row("empty", "full", bpf_ns=300.0)
    rows = [empty, _row("joj", "full"), _row("joj", "light")]
    assert [met for _, met in goals(rows)] == [True, True, True]
    rows = [empty, _row("joj", "full", bpf_ns=500.1, lost=1), _row("joj", "light", slowdown=0.021)]
    assert [met for _, met in goals(rows)] == [False, False, False]
    assert "300 ns" in goals(rows)[0][0]


def test_programs_of_bpf_that_ran_before_are_left_out_of_the_cost() -> None:
    before = Reading(10.0, {"calls": Runs(50, 5000.0)})
    now = Reading(12.0, {"calls": Runs(1050, 105_000.0), "new": Runs(1, 7.0)})
    assert now.runs_since(before) == {"calls": Runs(1000, 100_000.0), "new": Runs(1, 7.0)}
    assert Turn(10, 5.0, WatchCost({"a": Runs(1, 30.0), "b": Runs(2, 70.0)}, 200.0)).bpf_ns == 10


def test_programs_that_do_nothing_are_counted() -> None:
    setting = Path("/proc/sys/kernel/bpf_stats_enabled")
    if os.geteuid() != 0 or not os.access(setting, os.W_OK):
        pytest.skip("needs root: kernel.bpf_stats_enabled is written")
    was = setting.read_text()
    setting.write_text("1")
    try:
        with empty_programs():
            before = runs_of(os.getpid())
            for _ in range(1009):
                os.getppid()
            ran = Reading(0, runs_of(os.getpid())).runs_since(Reading(0, before))
    finally:
        setting.write_text(was)
    assert set(ran) == {"block_bio_queue", "block_rq_issue", "block_rq_comple", *_CALLS}
    assert all(ran[name].count >= 1009 and ran[name].time_ns > 0 for name in _CALLS)
    assert runs_of(os.getpid()) == {}


_CALLS = ("sys_enter", "sys_exit")
