"""Which syncs does a case need: what does each protect, and what does it cost? And what does its
program promise after an error, and does it keep that?

Reads what power cuts left of a case as it is, and of runs of it in which the syncs of one site, a
call on files of one use, did nothing: harm of a kind that was seen without a sync alone is what it
protects from. Reads what was found of runs beneath which an error was planted, a sync that fails or
a disk without room: when the filesystem was mounted again, and after power cuts. Their words are
made in jojlab/report/sync_needs.py and jojlab/report/faults.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jojlab.analysis.run.durability import Durability, summarise_power_cuts
from jojlab.trace.power_cuts import (
    OUTCOMES,
    FaultFindings,
    FaultKind,
    JudgedState,
    PowerCuts,
    RemountFindings,
)


class SyncVerdict(StrEnum):
    """The need of a sync, as far as it is known. None of them says that it can be spared."""

    PROTECTS = "protects"
    # The same harm was seen with every sync.
    ALIKE = "harm-with-and-without"
    UNSEEN = "nothing-seen"
    # The run in which it was to be left out made no such call.
    ABSENT = "no-such-call"
    # It was seen, and is of a kind that cannot be left out.
    FIXED = "not-left-out"


@dataclass(frozen=True)
class SyncNeed:
    """A site of syncs, and what was seen without it.

    `calls` are those of a run, within transactions where SQLite's own are counted; `cost_ns` is
    what they take of an operation, None where nothing is acknowledged or no call was left out.
    `outcomes` are those of states without it that were not seen with it; `state` is the one of
    these of the smallest cut.
    """

    site: str
    calls: int
    cost_ns: float | None
    verdict: SyncVerdict
    outcomes: Mapping[str, int]
    state: JudgedState | None
    durability: Durability


def sync_need(
    site: str, base: Sequence[PowerCuts], trial: Sequence[PowerCuts], *, runs_program: bool
) -> SyncNeed:
    """Return what is known of a site by a case's answers, one a seed, with it and without."""
    found = summarise_power_cuts(trial)
    if runs_program:
        calls = site_calls(base, site)
        is_absent = not site_calls(trial, site)
    else:
        calls = sum(answer.sync_calls for answer in base)
        calls = (calls - sum(answer.sync_calls for answer in trial)) // len(base)
        is_absent = calls <= 0
    _, own = _harmful_states(base, trial)
    if is_absent:
        verdict = SyncVerdict.ABSENT
    elif own:
        verdict = SyncVerdict.PROTECTS
    else:
        verdict = SyncVerdict.ALIKE if found.harmful else SyncVerdict.UNSEEN
    counts = {name: sum(state.outcome == name for state in own) for name in OUTCOMES}
    times = _operation_ns(base), _operation_ns(trial)
    return SyncNeed(
        site,
        max(calls, 0),
        None if is_absent or times[0] is None or times[1] is None else times[0] - times[1],
        verdict,
        {name: count for name, count in counts.items() if count},
        min(own, key=_ease, default=None),
        found,
    )


def _harmful_states(
    base: Sequence[PowerCuts], trial: Sequence[PowerCuts]
) -> tuple[list[JudgedState], list[JudgedState]]:
    """Return the states of a trial with harm, and those of them whose harm its base does not have.

    A block whose torn write no setting helps against says nothing of a sync or a promise.
    """
    usual = {state.outcome for answer in base for state in answer.states}
    states = [state for answer in trial for state in answer.states]
    harmful = [state for state in states if state.outcome != "kept" and not state.torn_block]
    return harmful, [state for state in harmful if state.outcome not in usual]


def fixed_syncs(base: Sequence[PowerCuts]) -> list[SyncNeed]:
    """Return the sites of a case that its run has and that cannot be left out."""
    names = dict.fromkeys(it.name for answer in base for it in answer.sync_sites if it.is_fixed)
    found = summarise_power_cuts(base)
    return [
        SyncNeed(name, site_calls(base, name), None, SyncVerdict.FIXED, {}, None, found)
        for name in names
    ]


def site_calls(answers: Sequence[PowerCuts], site: str) -> int:
    """Return how many calls of a site a run made, in the mean of its seeds, and one if any."""
    calls = sum(it.calls for answer in answers for it in answer.sync_sites if it.name == site)
    return max(calls // len(answers), bool(calls))


def _ease(state: JudgedState) -> tuple[bool, bool, int, int]:
    """Return how easily a state shows its harm: by how little is lost, the less, the smaller."""
    smallest = state.smallest
    if smallest is None or not smallest.is_minimal:
        return True, False, 0, -OUTCOMES.index(state.outcome)
    return False, smallest.needs_second_cut, len(smallest.slots), -OUTCOMES.index(state.outcome)


def _operation_ns(answers: Sequence[PowerCuts]) -> float | None:
    """Return the time of an operation, from the run's begin to the last one's return, or None."""
    times = [
        (answer.last_return_ns - answer.begin_ns, answer.operations)
        for answer in answers
        if answer.last_return_ns is not None
    ]
    count = sum(operations for _, operations in times)
    return sum(time for time, _ in times) / count if count else None


class FaultVerdict(StrEnum):
    """The fate of what was promised, as far as it was seen."""

    BROKEN = "broken"
    KEPT = "kept"
    # The same harm was seen without an error.
    ALIKE = "harm-with-and-without"
    # No call is known to have failed, so that nothing was tried.
    UNMET = "nothing-failed"


@dataclass(frozen=True)
class FaultOutcome:
    """An error, what the program or SQLite made of it, and what was found then.

    `findings` and `remount` are of the seed with the worst `remount`; `state` is the worst state
    after a power cut that has harm which was not seen without the error.
    """

    kind: FaultKind
    name: str
    verdict: FaultVerdict
    findings: FaultFindings
    remount: RemountFindings
    state: JudgedState | None
    durability: Durability


def fault_outcome(
    kind: FaultKind,
    name: str,
    base: Sequence[PowerCuts],
    trial: Sequence[PowerCuts],
    usual_end: str,
) -> FaultOutcome:
    """Return what came of an error, by the answers of a case without it and with it, of one seed
    each. Without it the program has its `usual_end`.
    """
    harmful, own = _harmful_states(base, trial)
    pairs = [(it.remount, it.fault) for it in trial if it.remount and it.fault]
    remount, findings = max(pairs, key=lambda each: OUTCOMES.index(each[0].outcome))
    found = summarise_power_cuts(trial)
    is_met = any(each.at_ns is not None for _, each in pairs)
    if kind == "no-space":
        # Not every call is seen that a full disk refuses: the program's end tells of it too.
        is_met |= any(each.ended != usual_end for _, each in pairs) or bool(own)
        is_met |= remount.outcome != "kept"
    if is_met and (remount.outcome != "kept" or own):
        verdict = FaultVerdict.BROKEN
    elif not is_met:
        verdict = FaultVerdict.UNMET
    else:
        verdict = FaultVerdict.ALIKE if harmful else FaultVerdict.KEPT
    shown = own if verdict is FaultVerdict.BROKEN else ()
    worst = max(shown, key=lambda state: state.badness, default=None)
    return FaultOutcome(kind, name, verdict, findings, remount, worst, found)
