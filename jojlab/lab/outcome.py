"""The outcome of a job: the files that its guest handed out, or why it failed, and whether another
try may end otherwise.

Tried again, once, are failures that the machine may have caused. A guest that died or returned
nothing may have been killed for lack of memory; a missing file may have been removed from outside.
A failure that the guest itself reports is not retried: the result is a pure function of the job, so
a second guest would report the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from jojlab.foundation.document import Mismatch, conform
from jojlab.foundation.errors import GuestError, JojError, MachineError, disk_errors
from jojlab.lab.job import Kind
from jojlab.trace.power_cuts import PowerCuts


def is_transient(error: BaseException) -> bool:
    """Return whether the failure is worth a second try."""
    if isinstance(error, GuestError):
        return not error.final
    return isinstance(error, OSError)


def failure(error: BaseException) -> str:
    """Say why a job failed: an error of a file with the file, and in words."""
    if isinstance(error, OSError) and not isinstance(error, JojError):
        where = f"{error.filename}: " if error.filename else ""
        return f"this machine failed: {where}{error.strerror or type(error).__name__}"
    return str(error)


class _PowerCuts(PowerCuts, kw_only=True):
    """One part of it, as the agent divides a job among guests (jojlab/lab/power_cuts.py)."""

    part: int
    parts: int
    second_draws: int
    operation_hash: str


class _Writer(msgspec.Struct):
    """The last writer of some bytes (agent/src/verify/writers.rs)."""

    begin_bytes: int
    length_bytes: int
    block_type: str
    block_subtype: str
    inode: int | None
    path: str
    file_offset_bytes: int | None


class _SelfTest(msgspec.Struct):
    """Counts are in bytes, but for lost_events (agent/src/verify/check.rs)."""

    bytes: int
    types: dict[str, int]
    checked_bytes: int
    uncheckable_bytes: int
    misattributed_bytes: int
    offsetless_bytes: int
    unknown_bytes: int
    missing_bytes: int
    lost_events: int
    did: list[str]
    left_out: dict[str, str]
    reasons: list[str]
    complaints: list[str]
    writers: list[_Writer]


_SHAPES: dict[Kind, type[msgspec.Struct]] = {Kind.POWER_CUTS: _PowerCuts, Kind.SELF_TEST: _SelfTest}


def read_answer(kind: Kind, raw: bytes | str) -> dict[str, Any]:
    """Return an answer of the agent; raises MachineError naming the place that is wrong in it."""
    try:
        found: dict[str, Any] = msgspec.json.decode(raw)
        conform(found, _SHAPES[kind])
    except (Mismatch, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MachineError(
            f"the agent's {kind.answer}: {error}",
            "use the joj and joj-agent of one and the same version",
        ) from error
    return found


@dataclass(frozen=True)
class Outcome:
    """A job that went well: the files by name, and whether they came from the cache."""

    files: Mapping[str, bytes]
    from_cache: bool = False

    def write(self, folder: Path) -> None:
        """Write the files into `folder`, which is made if need be."""
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                (folder / name).write_bytes(content)

    def answer(self, kind: Kind) -> dict[str, Any]:
        """Return the answer of a job of POWER_CUTS or SELF_TEST; MachineError if it is wrong."""
        return read_answer(kind, self.files[kind.answer])


@dataclass(frozen=True)
class FailedJob:
    """A job that failed, and harmed no other."""

    error: Exception

    @property
    def why(self) -> str:
        """The reason in words."""
        return failure(self.error)
