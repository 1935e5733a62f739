"""Jobs that judge what power cuts leave of a case's run, and their answers as one.

Each job performs the case's own run, to the byte: its record is the case's, and what is asked about
cuts is read when the run is over (agent/src/lab/power_cut). The states are divided among several
guests; how many, only their number decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jojlab.foundation.errors import MachineError
from jojlab.guest.machine import Machine
from jojlab.lab.job import Job, Kind, canonical

# States of one guest: it takes a few seconds to perform the run.
_STATES_PER_GUEST = 500
# What all parts of one job say alike.
_COMMON = (
    "case",
    "seed",
    "operation_hash",
    "tables",
    "transactions",
    "model",
    "asked_states",
    "begin_ns",
)
_OF_A_PART = ("part", "parts", "second_draws")


def power_cuts(case: Job, states: int) -> tuple[Job, ...]:
    """Return the jobs, a part each, that judge so many states of `case`, of a modelled device."""
    assert isinstance(case.machine, Machine)
    parts = max(1, -(-states // _STATES_PER_GUEST))
    return tuple(
        replace(
            case,
            kind=Kind.POWER_CUTS,
            afterwards=canonical({"power_cuts": {"states": states, "part": part, "parts": parts}}),
        )
        for part in range(parts)
    )


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answers of all parts of one job as one; a state that two found counts once.

    Raises MachineError when the parts are not of one and the same run.
    """
    first = parts[0]
    for part in parts[1:]:
        for key in _COMMON:
            if part[key] != first[key]:
                raise MachineError(
                    f"the parts of one job of power cuts differ in {key}: their runs are not one",
                    "joj cache --empty; if it happens again, please report it",
                )
    distinct: dict[tuple[str, int], Mapping[str, Any]] = {}
    for part in parts:
        for state in part["states"]:
            distinct.setdefault((state["hash"], state["promises"]), state)
    states = sorted(distinct.values(), key=lambda state: (state["cut_ns"], state["hash"]))
    boundary = sum(str(state["kind"]).startswith("boundary-") for state in states)
    by_kind: dict[str, Counter[str]] = {}
    for state in states:
        by_kind.setdefault(state["kind"], Counter())[state["outcome"]] += 1
    # Draws among the states of the run are the same in all parts; those among recoveries add up.
    draws = first["draws"] + sum(part["second_draws"] for part in parts[1:])
    return {
        **{key: value for key, value in first.items() if key not in _OF_A_PART},
        "boundary_states": boundary,
        "sampled_states": len(states) - boundary,
        "draws": draws,
        "outcomes": dict(Counter(state["outcome"] for state in states)),
        "by_kind": {kind: dict(counts) for kind, counts in by_kind.items()},
        "states": states,
    }
