"""What does one commit cost here, where does it go, is it safe, and what would make it cheaper?

The four answers that a report opens with, about the first measured case of an experiment. Cheaper
is said of cases of the same run alone, which do the same work by other means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.commit.bill import ClassShare, caused_shares
from jojlab.analysis.commit.trace import CommitTrace
from jojlab.analysis.run.compare import differences
from jojlab.analysis.run.risks import risks_more
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.run.survival import is_worse
from jojlab.model.fields import same_work

_MOST_CHEAPER = 3
# What is faster by less is not worth a word: the timer's phase moves a measurement as far.
_FASTER = 1.02


@dataclass(frozen=True)
class TimeShares:
    """Parts of one typical commit's time. `elsewhere`: no request was with the device."""

    flushing: float
    moving: float
    elsewhere: float


@dataclass(frozen=True)
class CheaperCase:
    """A case that does the same work in less time: `times` as fast; whether it risks more, by the
    manuals or by what power cuts left, or it is not known that it does not.
    """

    case: CaseSummary
    times: float
    is_riskier: bool
    # The same in SQLite's other regimes, where it may be no faster.
    regimes: tuple[CaseSummary, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The answers about `case`; `classes` are of all that a commit causes, dearest first.

    `measured` are all cases with figures, of which each has its hazards.
    """

    case: CaseSummary
    classes: tuple[ClassShare, ...]
    time: TimeShares | None
    measured: tuple[CaseSummary, ...]
    cheaper: tuple[CheaperCase, ...]
    compared: int
    # The same in SQLite's other regimes.
    regimes: tuple[CaseSummary, ...] = ()


def answer(summary: RunSummary) -> Answer | None:
    """Return the answers, or None where no case has a bill."""
    billed = [case for case in summary.measured if case.bill]
    if not billed:
        return None
    base = billed[0]
    assert base.bill
    others = [case for case in billed[1:] if _same_work(base.case, case.case)]
    return Answer(
        base,
        caused_shares(base.bill),
        time_shares(base.trace) if base.trace and not base.trace.is_checkpoint else None,
        summary.measured,
        _cheaper(base, others, billed),
        len(others),
        _other_regimes(base, billed),
    )


def time_shares(trace: CommitTrace) -> TimeShares | None:
    """Return how a commit's time is shared; while the device flushes, nothing else counts."""
    if not trace.latency_ns:
        return None
    done = [run for run in trace.runs if run.complete_ns is not None]
    flushes = [(r.issue_ns, int(r.complete_ns or 0)) for r in done if r.operation == "flush"]
    everything = [(r.issue_ns, int(r.complete_ns or 0)) for r in done]
    flushing, busy = (_covered(spans, trace.latency_ns) for spans in (flushes, everything))
    whole = trace.latency_ns
    return TimeShares(flushing / whole, (busy - flushing) / whole, (whole - busy) / whole)


def _covered(spans: Iterable[tuple[int, int]], end_ns: int) -> int:
    """Return how much of 0 .. end_ns some span covers."""
    covered = reached = 0
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, end_ns)
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def _same_work(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return same_work(set(differences(one, other)))


def _other_regimes(base: CaseSummary, cases: Iterable[CaseSummary]) -> tuple[CaseSummary, ...]:
    """Return the cases that differ from `base` in nothing but SQLite's regime."""
    return tuple(case for case in cases if set(differences(base.case, case.case)) == {"regime"})


def _cheaper(
    base: CaseSummary, others: Iterable[CaseSummary], cases: Sequence[CaseSummary]
) -> tuple[CheaperCase, ...]:
    """Return the fastest cases: those that risk no more than `base`, then the fastest that does."""
    base_ns = base.figures.median["latency_ns_p50"]
    found = []
    for case in others:
        case_ns = case.figures.median["latency_ns_p50"]
        if 0 < case_ns * _FASTER <= base_ns:
            riskier = (
                risks_more(case.hazards, than=base.hazards)
                or is_worse(case.survival, than=base.survival)
                or not set(case.unknowns) <= set(base.unknowns)
            )
            regimes = _other_regimes(case, cases)
            found.append(CheaperCase(case, base_ns / case_ns, riskier, regimes))
    found.sort(key=lambda each: -each.times)
    safe = [each for each in found if not each.is_riskier][:_MOST_CHEAPER]
    risky = [each for each in found if each.is_riskier]
    least = safe[0].times * _FASTER if safe else 0
    return (*safe, *(each for each in risky[:1] if each.times >= least))
