"""Answers of the agent: what is not as it should be is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.lab.job import Kind
from jojlab.lab.outcome import read_answer

STATE = {
    "cut_ns": 7, "kind": "subset", "after_return": True, "acknowledged": 3, "begun": 4,
    "outcome": "kept", "found": [3, None], "lost": 0, "message": "", "fsck": "clean",
    "kernel_log": "", "hash": "1f",
}  # fmt: skip
PART: dict[str, Any] = {
    "seed": 1, "tables": {"files.parquet": "0a"}, "model": {}, "asked_states": 1,
    "boundary_states": 0, "boundary_states_left_out": 0, "sampled_states": 1, "draws": 2,
    "begin_ns": 1, "end_ns": 9, "outcomes": {"kept": 1}, "states": [STATE], "part": 0, "parts": 1,
    "second_draws": 0, "operation_hash": "ab", "transactions": 3,
}  # fmt: skip


def test_a_whole_answer_is_as_it_was_written() -> None:
    assert read_answer(Kind.POWER_CUTS, json.dumps(PART)) == PART


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "lacks seed"),
        ({**PART, "states": [{**STATE, "lost": "0"}]}, r"states\[0\].lost must be a whole number"),
        ({**PART, "states": [{**STATE, "outcome": "gone"}]}, r"states\[0\].outcome cannot be"),
        ({**PART, "sampled_states": 2}, "sampled_states is 2, but 1 are listed"),
        ([], "must be a table"),
    ],
)
def test_a_malformed_answer_is_refused_with_its_field(answer: Any, words: str) -> None:
    with pytest.raises(MachineError, match=rf"power_cuts\.json: .*{words}"):
        read_answer(Kind.POWER_CUTS, json.dumps(answer))


@pytest.mark.parametrize("raw", [b"", b"\xff", b"{", b"[" * 100_000])
def test_an_answer_that_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(MachineError, match=r"verification\.json"):
        read_answer(Kind.SELF_TEST, raw)
