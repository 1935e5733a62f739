"""Tests how calls that perf recorded are paired, and how the agent runs below another program."""

from __future__ import annotations

from pathlib import Path

from bench import peers
from bench.sync_share import agent_under, pair_calls


def test_the_agent_runs_below_a_program_that_is_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    # As perf does, timeout(1) starts the program as a child and waits for it.
    agent = agent_under(["timeout", "600"], folder)
    begin_ns, end_ns = peers.measured_ns(tmp_path, peers.file_write("random", "fsync", 3), agent)
    assert begin_ns < end_ns


def test_calls_are_paired_by_thread() -> None:
    lines = [
        " 7 1.000000000:     syscalls:sys_exit_fsync: ",
        " 7 2.000000000:     syscalls:sys_enter_fsync: ",
        " 8 2.500000000: syscalls:sys_enter_fdatasync: ",
        " 8 3.000000000:  syscalls:sys_exit_fdatasync: ",
        " 7 4.250000000:      syscalls:sys_exit_fsync: ",
    ]
    assert list(pair_calls(lines)) == [(2.5, 3.0), (2.0, 4.25)]
