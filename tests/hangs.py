"""Waits for a program that a test started, and shows where joj waits if it does not end."""

from __future__ import annotations

import signal
import subprocess

import pytest

# The longest that a test waits for what must come. It judges no speed, as a machine may be busy: it
# ends a wait without end, before pytest ends the whole run after 900 s (Makefile).
HANG_S = 840
# Python shows the stacks of all its threads when it is aborted.
SHOWS_STACKS = {"PYTHONFAULTHANDLER": "1"}


def await_end(process: subprocess.Popen[str], timeout_s: float = HANG_S) -> tuple[str, str]:
    """Return what a program printed on stdout and stderr up to its end.

    One that does not end within the time is aborted, and the test fails with what it printed.
    """
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:  # another process holds its output open
        process.kill()
        out, err = "", "and its output was held open"
    pytest.fail(f"{process.args!r} did not end within {timeout_s:g} s\n{out}\n{err}")
