"""Waits for a program that a test started, and shows where joj waits if it does not end."""

from __future__ import annotations

import signal
import subprocess

import pytest

# A machine may be busy; a test that waits without end is ended by nothing else that names it.
WITHIN_S = 300
# Python shows the stacks of all its threads when it is aborted.
SHOWS_STACKS = {"PYTHONFAULTHANDLER": "1"}


def ended(process: subprocess.Popen[str], within_s: float = WITHIN_S) -> tuple[str, str]:
    """Return what a program printed on stdout and stderr up to its end.

    One that does not end within the time is aborted, and the test fails with what it printed.
    """
    try:
        return process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:  # another process holds its output open
        process.kill()
        out, err = "", "and its output was held open"
    pytest.fail(f"{process.args!r} did not end within {within_s:g} s\n{out}\n{err}")
