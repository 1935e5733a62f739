"""What does one commit cost here, where does it go, is it safe, and what would make it cheaper?

The figures of the short answer that commands open with (jojlab/report/answer.py has its
words). Of several cases it is the range, and the fields whose values decide. Cheaper is said of
cases of the same run alone, which do the same work by other means than the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from jojlab.analysis.commit.bill import ClassShare, ReasonShare, caused_shares
from jojlab.analysis.commit.story import CommitTrace
from jojlab.analysis.run.compare import differences
from jojlab.analysis.run.durability import is_worse
from jojlab.analysis.run.risks import risks_more
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.model.fields import is_same_work
from jojlab.model.figures import CAUSED, Number

_P50 = "latency_ns_p50"
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
class Factor:
    """A field that the run varies, and how much its value decides.

    `fastest` and `slowest` are the values of the least and the largest p50, by the geometric mean
    over cases that differ in this field alone. Of two such cases the one with `fastest` is at least
    `least` and at most `most` times as fast as that with `slowest`.
    """

    name: str
    fastest: str
    slowest: str
    least: float
    most: float
    mean: float


@dataclass(frozen=True)
class Answer:
    """The answers about `measured_cases`; each has its hazards, and `case` is the first of them.

    `classes` are of all that a commit of `case` causes, dearest first; none without a bill.
    `journal_reason` is why its filesystem's journal wrote most; None where that is not known.
    `factors` are what decides between several cases, what decides most first.
    """

    case: CaseSummary
    classes: tuple[ClassShare, ...]
    journal_reason: ReasonShare | None
    time: TimeShares | None
    measured_cases: tuple[CaseSummary, ...]
    cheaper: tuple[CheaperCase, ...]
    compared: int
    factors: tuple[Factor, ...] = ()

    def ends(self, figure: str) -> tuple[Number, Number] | None:
        """Return the smallest and the largest of a figure, or None where no case has it."""
        found = [
            c.figures.median[figure] for c in self.measured_cases if figure in c.figures.median
        ]
        return (min(found), max(found)) if found else None

    @property
    def dataless_bytes_per_commit(self) -> float:
        """Return the bytes of blocks that a commit discards or has zeroed: none of them is sent."""
        bill = self.case.bill
        rows = [row for row in bill.rows if row.part in CAUSED] if bill else []
        return bill.per_commit(sum(row.dataless_bytes for row in rows)) if bill else 0.0

    @property
    def read_share(self) -> float:
        """Return which share of the bytes that a commit of `case` causes are read."""
        rows = [row for row in self.case.bill.rows if row.part in CAUSED] if self.case.bill else []
        whole = sum(row.bytes for row in rows)
        read = sum(row.bytes for row in rows if row.operation == "read")
        return read / whole if whole else 0.0

    def share_ends(self, part: str, whole: str) -> tuple[float, float] | None:
        """Return the smallest and the largest share that one figure is of another."""
        found = [
            case.figures.median[part] / case.figures.median[whole]
            for case in self.measured_cases
            if part in case.figures.median and case.figures.median.get(whole)
        ]
        return (min(found), max(found)) if found else None


def answer(summary: RunSummary) -> Answer | None:
    """Return the answers, or None where no case has a transaction that was timed."""
    timed = tuple(case for case in summary.measured_cases if _P50 in case.figures.median)
    if not timed:
        return None
    base, *others = timed
    others = [case for case in others if is_same_work(set(differences(base.case, case.case)))]
    bill = base.bill
    return Answer(
        base,
        caused_shares(bill) if bill else (),
        _journal_reason(bill.reasons) if bill else None,
        time_shares(base.trace) if base.trace and not base.trace.is_checkpoint else None,
        timed,
        _cheaper(base, others, timed),
        len(others),
        factors(summary, timed),
    )


def _journal_reason(reasons: Iterable[ReasonShare]) -> ReasonShare | None:
    """Return why the filesystem's journal wrote most while commits ran; None if not known."""
    found = (each for each in reasons if (each.part, each.block_type) == ("commit", "fs-journal"))
    most = max(found, key=lambda each: each.bytes, default=None)
    return most if most and most.reason != "unknown" else None


def factors(summary: RunSummary, cases: Sequence[CaseSummary]) -> tuple[Factor, ...]:
    """Return the fields by which cases are named, as far as some differ in one of them alone."""
    if len(cases) < 2 or summary.is_composed:
        return ()
    [part] = summary.parts
    places = {case.case_id: part.values(case.case_id, case.case) for case in cases}
    found = (
        _factor(name, place, [(places[c.case_id], c.figures.median[_P50]) for c in cases])
        for place, name in enumerate(part.named_by)
    )
    return tuple(sorted(filter(None, found), key=lambda each: -each.mean))


def _factor(
    name: str, place: int, cases: Iterable[tuple[tuple[str, ...], Number]]
) -> Factor | None:
    """Return how much a case's field at `place` decides; None where no cases differ in it alone."""
    groups: dict[tuple[str, ...], dict[str, float]] = {}
    for values, p50_ns in cases:
        if p50_ns > 0:
            others = values[:place] + values[place + 1 :]
            groups.setdefault(others, {})[values[place]] = math.log(p50_ns)
    every = list(dict.fromkeys(value for group in groups.values() for value in group))
    # Values are compared within groups that have all of them: a mean over others is no comparison.
    whole = [group for group in groups.values() if len(group) == len(every) > 1]
    if not whole:
        return None
    means = {value: fmean(group[value] for group in whole) for value in every}
    fastest, slowest = min(every, key=means.__getitem__), max(every, key=means.__getitem__)
    times = [math.exp(group[slowest] - group[fastest]) for group in whole]
    mean = math.exp(means[slowest] - means[fastest])
    return Factor(name, fastest, slowest, min(times), max(times), mean)


def times_as_fast(summary: RunSummary) -> dict[str, float]:
    """Return how many times as fast as the first measured case each is, by case_id, of p50."""
    p50_ns = {
        case.case_id: case.figures.median[_P50]
        for case in summary.measured_cases
        if case.figures.median.get(_P50)
    }
    first_ns = next(iter(p50_ns.values()), 0)
    return {case_id: first_ns / each for case_id, each in p50_ns.items()}


def time_shares(trace: CommitTrace) -> TimeShares | None:
    """Return how a commit's time is shared; while the device flushes, nothing else counts."""
    if not trace.latency_ns:
        return None
    done = [run for run in trace.runs if run.complete_ns is not None]
    flushes = [(r.issue_ns, int(r.complete_ns or 0)) for r in done if r.operation == "flush"]
    everything = [(r.issue_ns, int(r.complete_ns or 0)) for r in done]
    flushing, busy = (_covered_ns(spans, trace.latency_ns) for spans in (flushes, everything))
    whole = trace.latency_ns
    return TimeShares(flushing / whole, (busy - flushing) / whole, (whole - busy) / whole)


def _covered_ns(spans: Iterable[tuple[int, int]], end_ns: int) -> int:
    """Return how much of 0 .. end_ns some span covers."""
    covered = reached = 0
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, end_ns)
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def _cheaper(
    base: CaseSummary, others: Iterable[CaseSummary], cases: Sequence[CaseSummary]
) -> tuple[CheaperCase, ...]:
    """Return the fastest cases: those that risk no more than `base`, then the fastest that does.

    Of the fastest ones that differ by too little to tell, the first is the one that is fastest in
    SQLite's other regimes, and else the first of the run, so that no noise decides.
    """
    base_ns = base.figures.median[_P50]
    found = []
    for case in others:
        case_ns = case.figures.median[_P50]
        if 0 < case_ns * _FASTER <= base_ns:
            riskier = (
                risks_more(case.hazards, others=base.hazards)
                or is_worse(case.durability, other=base.durability)
                or not set(case.unknowns) <= set(base.unknowns)
            )
            same = (it for it in cases if set(differences(case.case, it.case)) == {"regime"})
            found.append(CheaperCase(case, base_ns / case_ns, riskier, tuple(same)))
    safe = _fastest_first(each for each in found if not each.is_riskier)[:_MOST_CHEAPER]
    risky = _fastest_first(each for each in found if each.is_riskier)
    least = safe[0].times * _FASTER if safe else 0
    return (*safe, *(each for each in risky[:1] if each.times >= least))


def _fastest_first(cases: Iterable[CheaperCase]) -> list[CheaperCase]:
    """Return cases by their time; those that tie with the fastest by that of their regimes."""
    in_order = list(cases)
    most = max((each.times for each in in_order), default=0)

    def rank(each: CheaperCase) -> tuple[bool, float]:
        is_tie = each.times * _FASTER > most
        regimes_ns = sum(other.figures.median[_P50] for other in each.regimes)
        return not is_tie, regimes_ns if is_tie else -each.times

    return sorted(in_order, key=rank)
