"""Which failures of a job are tried again, and how they are reported. Tried again, once, are those
that the machine it ran on may have caused.

A guest that died or returned nothing may have been killed for lack of memory, and so may the
process that ran it; a missing file may have been removed from outside. A failure that the guest
itself reports is not retried: the result is a pure function of the job, so a second guest would
report the same.
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor

from jojlab.foundation.errors import JojError
from jojlab.guest.errors import GuestError


def worth_another_try(error: BaseException) -> bool:
    """Whether a second try may end otherwise."""
    if isinstance(error, GuestError):
        return not error.final
    return isinstance(error, OSError | BrokenExecutor)


def failure(error: BaseException) -> str:
    """Say why a job failed: an error of a file with the file, and in words."""
    if isinstance(error, OSError) and not isinstance(error, JojError):
        where = f"{error.filename}: " if error.filename else ""
        return f"this machine failed: {where}{error.strerror or type(error).__name__}"
    if isinstance(error, BrokenExecutor):
        return "the process that ran it ended abruptly: was it killed for lack of memory?"
    return str(error)
