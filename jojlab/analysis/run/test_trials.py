"""Tests what a sync protects, from answers that are worked out by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jojlab.analysis.run.trials import SyncNeed, SyncVerdict, fixed_syncs, sync_need
from jojlab.trace.power_cuts import PowerCuts
from tests.power_cut_answers import SUPERBLOCK_LOG, answer, slot, smallest, state

SITE = "fsync records/#"


def cuts(*rows: dict[str, Any], calls: int = 24, **more: Any) -> PowerCuts:
    sites = [{"call": "fsync", "file": "records/#", "calls": calls}] if calls else []
    given = {"sync_sites": sites, "transactions": 10, **more}
    return msgspec.convert(answer(list(rows), {"requests": "0" * 64}, **given), PowerCuts)


def need(base: PowerCuts, trial: PowerCuts, *, runs_program: bool = True) -> SyncNeed:
    return sync_need(SITE, [base], [trial], runs_program=runs_program)


def test_a_sync_protects_from_harm_that_is_seen_without_it_alone() -> None:
    large, small = smallest(slot(), slot()), smallest(slot())
    found = need(
        cuts(state(1), state(2, outcome="corrupt")),
        cuts(
            state(1, outcome="lost", smallest=large),
            state(2, outcome="lost", smallest=small),
            state(3, outcome="lost"),
            state(4, outcome="corrupt", smallest=smallest()),
            state(5),
        ),
    )
    assert found.verdict is SyncVerdict.PROTECTS
    assert found.outcomes == {"lost": 3}
    assert found.calls == 24
    assert found.state
    assert found.state.smallest
    assert len(found.state.smallest.slots) == 1


@pytest.mark.parametrize(
    ("with_all", "without", "verdict"),
    [
        ([state(1)], [state(1), state(2)], SyncVerdict.UNSEEN),
        ([state(1, outcome="lost")], [state(1, outcome="lost")], SyncVerdict.ALIKE),
        (
            [state(1)],
            [state(1, "torn", "unmountable", kernel_log=SUPERBLOCK_LOG)],
            SyncVerdict.ALIKE,
        ),
    ],
    ids=["no-harm", "harm-in-both", "a-block-that-every-setting-risks"],
)
def test_harm_that_any_setting_has_proves_no_need_of_a_sync(
    with_all: list[dict[str, Any]], without: list[dict[str, Any]], verdict: SyncVerdict
) -> None:
    found = need(cuts(*with_all), cuts(*without))
    assert found.verdict is verdict
    assert not found.outcomes
    assert found.state is None


def test_a_run_that_makes_no_such_call_says_nothing() -> None:
    lost = state(1, outcome="lost")
    assert need(cuts(state(1)), cuts(lost, calls=0)).verdict is SyncVerdict.ABSENT
    base, trial = (cuts(state(1), sync_calls=8), cuts(lost, sync_calls=8))
    assert need(base, trial, runs_program=False).verdict is SyncVerdict.ABSENT
    fewer = need(base, cuts(lost, sync_calls=3), runs_program=False)
    assert (fewer.verdict, fewer.calls) == (SyncVerdict.PROTECTS, 5)


def test_a_sync_that_cannot_be_left_out_is_counted_in_the_run_as_it_is() -> None:
    fixed = {"call": "RWF_DSYNC", "file": "log", "calls": 5, "is_fixed": True}
    usual = {"call": "fsync", "file": "log", "calls": 2}
    [found] = fixed_syncs([cuts(state(1), sync_sites=[usual, fixed])])
    assert (found.site, found.calls, found.verdict) == ("RWF_DSYNC log", 5, SyncVerdict.FIXED)
    assert not fixed_syncs([cuts(state(1))])


def test_a_cost_is_of_an_operation_and_may_be_unknown() -> None:
    base, trial = (cuts(state(1), last_return_ns=last_ns) for last_ns in (5_000, 2_000))
    assert need(base, trial).cost_ns == 300
    assert need(cuts(state(1)), trial).cost_ns is None
