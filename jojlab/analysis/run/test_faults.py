"""Tests what came of an error, from answers that are worked out by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jojlab.analysis.run.trials import FaultVerdict, fault_outcome
from jojlab.trace.power_cuts import PowerCuts
from tests.power_cut_answers import SUPERBLOCK_LOG, answer, state

NAME = "fsync log 3"
KEPT, LOST = state(1), state(2, outcome="lost")


def cuts(*rows: dict[str, Any], **more: Any) -> PowerCuts:
    return msgspec.convert(answer(list(rows), {"a": "b"}, **more), PowerCuts)


def faulty(*rows: dict[str, Any], at_ns: int | None = 5, remount: str = "kept") -> PowerCuts:
    fault = {
        **{"kind": "sync-error", "at_ns": at_ns, "errno": 5, "free_bytes": None},
        **{"ended": "exit code 0", "last_line": ""},
        **{"acknowledged_before": 2, "acknowledged": 6},
    }
    return cuts(*rows, fault=fault, remount={"outcome": remount, "message": "found"})


@pytest.mark.parametrize(
    ("base", "trial", "verdict"),
    [
        (cuts(KEPT), faulty(KEPT), FaultVerdict.KEPT),
        (cuts(KEPT), faulty(KEPT, remount="lost"), FaultVerdict.BROKEN),
        (cuts(KEPT), faulty(KEPT, LOST), FaultVerdict.BROKEN),
        (cuts(LOST), faulty(LOST), FaultVerdict.ALIKE),
        (cuts(KEPT), faulty(LOST, at_ns=None, remount="lost"), FaultVerdict.UNMET),
        (
            cuts(KEPT),
            faulty(KEPT, state(3, "torn", "unmountable", kernel_log=SUPERBLOCK_LOG)),
            FaultVerdict.KEPT,
        ),
    ],
    ids=["kept", "remount", "power-cut", "without-too", "nothing-failed", "torn-block"],
)
def test_a_promise_is_broken_where_harm_came_with_the_error_alone(
    base: PowerCuts, trial: PowerCuts, verdict: FaultVerdict
) -> None:
    found = fault_outcome("sync-error", NAME, [base], [trial], "exit code 0")
    assert found.verdict is verdict
    assert (found.state is not None) == (verdict is FaultVerdict.BROKEN and len(trial.states) > 1)


def test_the_worst_of_several_seeds_is_shown() -> None:
    trial = [faulty(KEPT), faulty(KEPT, remount="corrupt")]
    base = [cuts(KEPT), cuts(KEPT)]
    found = fault_outcome("sync-error", NAME, base, trial, "exit code 0")
    assert found.remount.outcome == "corrupt"
    assert found.verdict is FaultVerdict.BROKEN


@pytest.mark.parametrize(
    ("usual_end", "verdict"),
    [("exit code 0", FaultVerdict.UNMET), ("exit code 3", FaultVerdict.KEPT)],
)
def test_a_full_disk_is_met_by_who_ends_otherwise(usual_end: str, verdict: FaultVerdict) -> None:
    trial = [faulty(KEPT, at_ns=None)]
    found = fault_outcome("no-space", "4 KiB free", [cuts(KEPT)], trial, usual_end)
    assert found.verdict is verdict
