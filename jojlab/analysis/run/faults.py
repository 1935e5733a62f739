"""What does a program promise after an error, and does it keep that?

Reads what was found of runs beneath which an error was planted, a sync that fails or a disk without
room: when the filesystem was mounted again, and after power cuts. Their words are made in
jojlab/report/faults.py.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """An error, what the program made of it, and what was found then.

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
    usual = {state.outcome for answer in base for state in answer.states}
    # A block whose torn write no setting helps against says nothing of a promise.
    harmful = [
        state
        for answer in trial
        for state in answer.states
        if state.outcome != "kept" and not state.torn_block
    ]
    own = [state for state in harmful if state.outcome not in usual]
    told = [(it.remount, it.fault) for it in trial if it.remount and it.fault]
    remount, findings = max(told, key=lambda each: OUTCOMES.index(each[0].outcome))
    found = summarise_power_cuts(trial)
    is_met = any(each.at_ns is not None for _, each in told)
    if kind == "no-space":
        # Not every call is seen that a full disk refuses: the program's end tells of it too.
        is_met |= any(each.ended != usual_end for _, each in told) or bool(own)
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
