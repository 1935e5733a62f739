"""How calls are paired that perf recorded."""

from __future__ import annotations

from bench.sync_share import paired


def test_calls_are_paired_by_thread() -> None:
    lines = [
        " 7 1.000000000:     syscalls:sys_exit_fsync: ",
        " 7 2.000000000:     syscalls:sys_enter_fsync: ",
        " 8 2.500000000: syscalls:sys_enter_fdatasync: ",
        " 8 3.000000000:  syscalls:sys_exit_fdatasync: ",
        " 7 4.250000000:      syscalls:sys_exit_fsync: ",
    ]
    assert list(paired(lines)) == [(2.5, 3.0), (2.0, 4.25)]
