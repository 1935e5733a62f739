"""Which failures are tried again, and how they are reported."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jojlab.experiment import tries
from jojlab.experiment.tries import failure, tried
from jojlab.foundation.errors import MachineError, UseError
from jojlab.guest.errors import GuestError

GONE = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/cache/work/x")


def _run(failures: list[BaseException]) -> tuple[str, list[str]]:
    """Run one task that fails so and then returns; return how it ended, and what was told."""
    told: list[str] = []

    def task() -> str:
        if failures:
            raise failures.pop(0)
        return "fine"

    with ThreadPoolExecutor(1) as pool:
        done = list(tried(pool, [("case", task)], lambda name, why: told.append(f"{name} {why}")))
    ((name, future),) = done
    assert name == "case"
    error = future.exception()
    return failure(error) if error else future.result(), told


@pytest.mark.parametrize("error", [GONE, GuestError("QEMU did not start")])
def test_what_may_be_the_machines_is_tried_once_more(error: Exception) -> None:
    assert _run([error]) == ("fine", [f"case {failure(error)}"])
    again, told = _run([error, error])
    assert again == failure(error) and len(told) == 1


@pytest.mark.parametrize(
    "error",
    [
        GuestError("the case failed in the guest: x", final=True),
        UseError("a bad value"),
        MachineError("the disk is full", "make room"),
    ],
)
def test_what_would_be_the_same_is_not(error: Exception) -> None:
    assert _run([error]) == (str(error), [])


def test_an_error_of_a_file_is_told_in_words() -> None:
    assert failure(GONE) == "this machine failed: /cache/work/x: No such file or directory"
    assert failure(OSError()) == "this machine failed: OSError"


def test_what_waits_is_dropped_when_the_caller_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, killed, ran = threading.Event(), threading.Event(), []
    monkeypatch.setattr(tries, "kill_all", killed.set)

    def wait() -> None:
        begun.set()
        killed.wait()

    tasks = [(0, lambda: None), (1, wait), (2, lambda: ran.append(2))]
    with (
        ThreadPoolExecutor(1) as pool,
        contextlib.closing(tried(pool, tasks, lambda *_: None)) as done,
    ):
        assert next(done)[0] == 0
        begun.wait()
    assert killed.is_set() and ran == []
