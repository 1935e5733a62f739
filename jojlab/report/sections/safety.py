"""Is it safe? What the manuals say of every case, what power cuts left of it, and when in its run.

Gets hazards and survivals; lays out a card for the first screen, and a section with every case
whose power was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jojlab.analysis.run.answer import Answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.run.survival import Moment, Survival
from jojlab.report.sections.overview import case_ids
from jojlab.report.sections.template import Cell, Noted, Section, render
from jojlab.report.words import hazards, survival, text, transaction
from jojlab.trace.power_cuts import OUTCOMES

# Of Okabe and Ito, as the charts' (charts/vega.py); harm also stands below the line.
COLOURS = {
    "kept": "#009E73",
    "lost": "#E69F00",
    "torn": "#CC79A7",
    "corrupt": "#D55E00",
    "unmountable": "#0072B2",
}
_WIDTH, _ABOVE, _BELOW = 600.0, 30.0, 30.0
# Of a stretch with a single state: it must be seen.
_LEAST = 2.5
_HOW_OF_PROGRAM = (
    "No power is cut of a program: record it, and cut the power of the recording (joj record, "
    "joj record --sql)."
)
_FEW = 4  # cases whose strips stand open


def card(found: Answer) -> dict[str, Any]:
    """Return what the first screen says: what power cuts left, and the risks by the manuals."""
    cases = found.measured
    told = hazards.by_sentence(cases)
    unsafe = [case for case in cases if case.survival and case.survival.is_unsafe]
    several = len(cases) > 1
    by_manuals = _risky(found, told) if told else _not_risky(found)
    if unsafe:
        whole = f"No: {len(unsafe)} of {len(cases)} cases proven unsafe"
        by_manuals["big"] = whole if several else "No: proven unsafe"
    others = (case for case in cases if not (case.survival and case.survival.is_unsafe))
    differing = [case for case in others if survival.contradiction(case)]
    seen = [_seen(case) for case in (*unsafe, *differing)]
    only_programs = all(case.case.get("workload") == "program" for case in cases)
    return {
        **by_manuals,
        "power_cuts": f"By power cuts: {survival.several(cases)}.",
        "seen": seen[:_FEW],
        "more": max(0, len(seen) - _FEW),
        "strip": strip(found.case),
        "of": found.case.label if several else "",
        "tested": any(case.survival for case in cases),
        "how": _HOW_OF_PROGRAM if only_programs else "joj run --durability tests it.",
    }


def _seen(case: CaseSummary) -> str:
    """Say what power cuts left of a case, and how the manuals differ."""
    words = (survival.contradiction(case), survival.short(case))
    return f"{case.label}: {'; '.join(filter(None, words))}"


def _risky(found: Answer, told: dict[str, list[str]]) -> dict[str, Any]:
    cases = found.measured
    risky = sum(bool(case.hazards or case.unknowns) for case in cases)
    several = len(cases) > 1
    alone = "Not entirely" if any(case.hazards for case in cases) else "Not known"
    return {
        "big": f"{len(cases) - risky} of {len(cases)} cases are, by the manuals"
        if several
        else alone,
        "risks": [
            (sentence, hazards.named(labels, len(cases)) if several else "")
            for sentence, labels in told.items()
        ],
        "line": "The manuals warn of no other." if several and risky < len(cases) else "",
    }


def _not_risky(found: Answer) -> dict[str, Any]:
    """Say of settings that risk nothing what the first case does for it."""
    cases, median = found.measured, found.case.figures.median
    if not median.get("bytes_per_commit", 1):
        return {"big": "Nothing to lose", "risks": (), "line": "It writes nothing to the device."}
    calls = text.count(median["sync_calls_per_commit"], "sync call")
    flushes = text.count(median["flushes_per_commit"], "flush", "flushes")
    word = "a commit" if transaction.has_commit([found.case]) else "an operation"
    several = f"the manuals warn of none of {len(cases)} cases"
    told = several if len(cases) > 1 else "the manuals warn of nothing"
    tested = "Not refuted" if any(case.survival for case in cases) else "Not tested"
    return {
        "big": f"{tested}; {told}",
        "risks": (),
        "line": f"By the manuals, {word} that returned survives a power cut {_with(cases)}, "
        f"if the device keeps flushed data. {found.case.label} makes {calls} and {flushes} each.",
    }


def _with(cases: Sequence[CaseSummary]) -> str:
    """Return what shows that: the settings, or what was seen of a program whose nobody knows."""
    if any(case.case.get("workload") in ("program", "replay") for case in cases):
        return "where it is synced as all were that were seen"
    return "with these settings"


def safety(summary: RunSummary, run: str) -> Section | None:
    """Return the section on power cuts, or None where no case was tested."""
    cut = [(case, case.survival) for case in summary.measured if case.survival]
    if not cut:
        return None
    html = render(
        "report/sections/safety.html",
        columns=["case", "by the manuals", "verdict", "states", *OUTCOMES],
        rows=[_row(case) for case in summary.measured],
        ids=case_ids(summary.measured),
        cases=[_case(case, found) for case, found in cut],
        is_open=len(cut) <= _FEW,
        several=survival.several(summary.measured),
        bound=survival.BOUND,
        shares=survival.SHARES,
        not_modelled=sorted({survival.not_in_model(*each) for each in cut}),
        run=run,
        experiment=summary.name,
    )
    return Section("safety", html)


def _row(case: CaseSummary) -> list[Cell]:
    manuals = hazards.manuals(case)
    found = case.survival
    if found is None:
        return [case.label, manuals, survival.NOT_TESTED, *(["–"] * (1 + len(OUTCOMES)))]
    verdict = "proven unsafe" if found.is_unsafe else "not refuted"
    counts = [f"{found.outcomes[name]:,}" for name in OUTCOMES]
    noted = Noted(verdict, survival.contradiction(case), "risk")
    return [case.label, manuals, noted, f"{found.states:,}", *counts]


def _case(case: CaseSummary, found: Survival) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "label": case.label,
        "soft": survival.short(case),
        "sentence": survival.sentence(case),
        "worst": " ".join(filter(None, (survival.worst(case), survival.torn_alone(case)))),
        "strip": strip(case),
        "kinds": [
            [kind, *(f"{counts[name]:,}" for name in OUTCOMES)]
            for kind, counts in found.by_kind.items()
        ],
        "kind_columns": ["state", *OUTCOMES],
    }


def strip(case: CaseSummary) -> dict[str, Any] | None:
    """Return the run's time as a strip: states in which nothing was lost above a line, harm below.

    None where the power of the case was not cut.
    """
    found = case.survival
    if found is None or not found.moments:
        return None
    most = max(1, *(sum(moment.outcomes.values()) for moment in found.moments))
    return {
        "width": _WIDTH,
        "height": _ABOVE + _BELOW,
        "line": _ABOVE,
        "bars": [
            bar
            for place, moment in enumerate(found.moments)
            for bar in _bars(place, moment, most, len(found.moments))
        ],
        "end": text.duration(found.moments[-1].end_ns),
        "key": [
            {"name": name, "colour": COLOURS[name], "count": f"{found.outcomes[name]:,}"}
            for name in OUTCOMES
            if found.outcomes[name]
        ],
        "label": f"{case.label}: states by the moment of the power cut. {survival.moments(case)}",
        "moments": survival.moments(case),
    }


def _bars(place: int, moment: Moment, most: int, places: int) -> Sequence[dict[str, Any]]:
    """Return the bars of a stretch: upward what was kept, downward harm, the worst at the end."""
    width = _WIDTH / places
    begin, end = (text.duration(ns) for ns in (moment.begin_ns, moment.end_ns))
    bars, below = [], _ABOVE
    for name in OUTCOMES:
        count = moment.outcomes[name]
        if not count:
            continue
        height = max(_LEAST, count / most * (_ABOVE if name == "kept" else _BELOW))
        top = _ABOVE - height if name == "kept" else below
        below += 0 if name == "kept" else height
        bars.append(
            {
                "x": f"{place * width:.1f}",
                "y": f"{top:.1f}",
                "width": f"{width - 1:.1f}",
                "height": f"{height:.1f}",
                "colour": COLOURS[name],
                "title": f"{begin} to {end}: {count:,} {name}",
            }
        )
    return bars
