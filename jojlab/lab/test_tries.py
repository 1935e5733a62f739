"""Tests which failures are tried again, and how they are reported."""

from __future__ import annotations

import errno
import os

import pytest

from jojlab.foundation.errors import GuestError, MachineError, UseError
from jojlab.lab.outcome import failure, is_transient

GONE = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/cache/work/x")


@pytest.mark.parametrize("error", [GONE, GuestError("QEMU did not start")])
def test_a_fault_of_the_machine_is_transient(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        GuestError("the case failed in the guest: x", final=True),
        UseError("a bad value"),
        MachineError("the disk is full", "make room"),
    ],
)
def test_a_failure_that_would_be_the_same_is_not_tried_again(error: Exception) -> None:
    assert not is_transient(error)
    assert failure(error) == str(error)


def test_an_error_of_a_file_is_told_in_words() -> None:
    assert failure(GONE) == "this machine failed: /cache/work/x: No such file or directory"
    assert failure(OSError()) == "this machine failed: OSError"
