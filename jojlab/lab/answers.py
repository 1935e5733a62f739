"""What the agent answers to jobs of power cuts and self-tests: JSON, checked as it is read."""

from __future__ import annotations

from typing import Any

import msgspec

from jojlab.foundation.document import Mismatch, conform
from jojlab.foundation.errors import MachineError
from jojlab.lab.job import Kind
from jojlab.trace.power_cuts import PowerCuts


class _PowerCuts(PowerCuts, kw_only=True):
    """One part of it, as the agent divides a job among guests (jojlab/lab/power_cuts.py)."""

    part: int
    parts: int
    second_draws: int
    operation_hash: str
    transactions: int


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


_SHAPES: dict[Kind, type[msgspec.Struct]] = {
    Kind.POWER_CUTS: _PowerCuts,
    Kind.SELF_TEST: _SelfTest,
}


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
