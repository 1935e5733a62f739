"""Answers of the agent: what is not as it should be is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.lab.answers import read_answer
from jojlab.lab.job import Kind

CUT = {
    "cut_ns": 7, "after_return": True, "survivors": "none", "acknowledged": 3, "begun": 4,
    "outcome": "kept", "found": [3, None], "lost": 0, "message": "",
}  # fmt: skip


def test_a_whole_answer_is_as_it_was_written() -> None:
    assert read_answer(Kind.POWER_CUTS, json.dumps({"cuts": [CUT]})) == {"cuts": [CUT]}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "lacks cuts"),
        ({"cuts": [{**CUT, "lost": "0"}]}, r"cuts\[0\].lost must be a whole number"),
        ({"cuts": [{**CUT, "outcome": "gone"}]}, r"cuts\[0\].outcome cannot be 'gone'"),
        ([], "must be a table"),
    ],
)
def test_what_is_wrong_is_named(answer: Any, words: str) -> None:
    with pytest.raises(MachineError, match=rf"power_cuts\.json: .*{words}"):
        read_answer(Kind.POWER_CUTS, json.dumps(answer))


@pytest.mark.parametrize("raw", [b"", b"\xff", b"{", b"[" * 100_000])
def test_what_is_no_json_is_told(raw: bytes) -> None:
    with pytest.raises(MachineError, match=r"verification\.json"):
        read_answer(Kind.SELF_TEST, raw)
