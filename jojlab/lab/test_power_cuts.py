"""Power cuts of one case: their jobs perform its own run, and their answers become one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jojlab.foundation.cache import sha256
from jojlab.foundation.errors import MachineError
from jojlab.lab.job import Kind
from jojlab.lab.power_cuts import (
    add_native_verdicts,
    add_smallest_cuts,
    merge_answers,
    run_of_complaints,
)
from jojlab.trace.power_cuts import NATIVE, PowerCuts


def state(
    at: int, kind: str, content: str, outcome: str = "kept", promises: int = 3
) -> dict[str, Any]:
    return {
        "cut_ns": at, "kind": kind, "after_return": False, "acknowledged": 3, "begun": 4,
        "promises": promises, "outcome": outcome, "found": [3], "lost": 0, "message": "",
        "fsck": "clean", "kernel_log": "", "hash": content,
    }  # fmt: skip


def part(number: int, second_draws: int, *states: dict[str, Any]) -> dict[str, Any]:
    return {
        "case": {}, "seed": 1, "operation_hash": "ab", "tables": {"files.parquet": sha256(b"x")},
        "transactions": 3, "model": {}, "asked_states": 9, "boundary_states_left_out": 2,
        "draws": 5 + second_draws, "second_draws": second_draws, "begin_ns": 1, "end_ns": 9,
        "states": list(states), "part": number, "parts": 2, "unchecked": [],
        "last_return_ns": 8, "sync_calls": 4, "sync_sites": [], "fault": None, "remount": None,
        "program": None,
    }  # fmt: skip


FIRST = part(0, 1, state(7, "boundary-all", "0a"), state(5, "second", "0b"))
OTHER = part(1, 2, state(6, "subset", "0c", "lost"), state(8, "second", "0b"))


def test_a_state_that_two_guests_found_counts_once() -> None:
    found = merge_answers([FIRST, OTHER])
    assert [each["hash"] for each in found["states"]] == ["0b", "0c", "0a"]
    assert (found["boundary_states"], found["sampled_states"]) == (1, 2)
    # Each guest made the five draws of the run; one and two of recoveries.
    assert found["draws"] == 8
    assert found["outcomes"] == {"kept": 2, "lost": 1}
    assert found["by_kind"]["subset"] == {"lost": 1}
    fields = set(PowerCuts.__struct_encode_fields__)
    assert fields <= set(found), fields - set(found)


def test_one_content_is_two_states_where_more_was_promised() -> None:
    later = part(1, 0, state(8, "subset", "0b", "lost", promises=4))
    assert merge_answers([FIRST, later])["outcomes"] == {"kept": 2, "lost": 1}


def test_parts_of_two_runs_are_refused() -> None:
    with pytest.raises(MachineError, match="differ in tables"):
        merge_answers([FIRST, {**OTHER, "tables": {"files.parquet": "other"}}])


def test_verdicts_of_user_mode_linux_say_so_and_count() -> None:
    name = Kind.POWER_CUTS.answer
    guest = {name: msgspec.json.encode(part(0, 1, state(5, "second", "0b")))}
    states = [state(7, "boundary-all", "0a"), state(6, "subset", "0c", "lost")]
    found = {"states": states, "second_draws": 2}
    draws = msgspec.json.decode(guest[name])["draws"]
    add_native_verdicts(guest, {name: msgspec.json.encode(found)})
    whole = merge_answers([msgspec.json.decode(guest[name])])
    assert [each.get("judge") for each in whole["states"]] == [None, NATIVE, NATIVE]
    assert whole["outcomes"] == {"kept": 2, "lost": 1}
    assert (whole["boundary_states"], whole["sampled_states"]) == (1, 2)
    assert whole["draws"] == draws + 2


def test_complaints_of_the_checker_alone_are_shrunk_by_a_second_judging() -> None:
    def harmful_state(
        at: int, kind: str, content: str, message: str, **more: Any
    ) -> dict[str, Any]:
        one = state(at, kind, content.zfill(16), "corrupt")
        return {**one, "message": message, "smallest": None, **more}

    name = Kind.POWER_CUTS.answer
    states = [
        harmful_state(5, "torn", "0a", "fsck: 255"),
        harmful_state(6, "torn", "0b", "SQLite", smallest={"slots": [1]}),
        state(7, "subset", "0c".zfill(16)),
        harmful_state(7, "second", "0d", "fsck: 255"),
    ]
    found = {name: msgspec.json.encode({"states": states})}
    run = {"states": [(at, {"hash": at, "promises": 3}) for at in (9, 10, 11, 12)], "image": None}
    fewer = msgspec.json.decode(run_of_complaints(found, msgspec.json.encode(run)))
    # A recovery is that of the state before it.
    assert [state["hash"] for _, state in fewer["states"]] == [0xA, 0xC]
    assert fewer["checks_all"] is True
    checked = [
        {**states[0], "smallest": {"slots": [7]}},
        {**states[3], "hash": "ff", "smallest": {"slots": [8]}},
    ]
    add_smallest_cuts(found, {name: msgspec.json.encode({"states": checked})})
    said = [each.get("smallest") for each in msgspec.json.decode(found[name])["states"]]
    assert said == [{"slots": [7]}, {"slots": [1]}, None, None]
    found = {name: msgspec.json.encode({"states": states[1:3]})}
    assert run_of_complaints(found, msgspec.json.encode(run)) == b""
