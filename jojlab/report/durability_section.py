"""The section of a page on safety: the risks by the manuals, and every case whose power was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jojlab.analysis.run.durability import Durability, Moment
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report import hazards
from jojlab.report.durability import (
    BOUND,
    NOT_TESTED,
    SHARES,
    boot_sentence,
    cause_sentences,
    contradiction,
    model_limits,
    moments,
    needs_sentence,
    outcome_words,
    summarise_durability,
    verdict_sentence,
    worst_sentence,
)
from jojlab.report.shared import text
from jojlab.report.shared.template import Cell, NotedCell, Section, case_ids
from jojlab.trace.power_cuts import OUTCOMES

# Of Okabe and Ito, as the charts' (shared/vega.py); harm also stands below the line.
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
_FEW = 4  # cases whose strips stand open


def safety(summary: RunSummary, run: str) -> Section | None:
    """Return the section on risks and power cuts, or None where there is neither."""
    cases = summary.measured_cases
    cut = [(case, case.durability) for case in cases if case.durability]
    risks = [
        (sentence, where if len(cases) > 1 else "")
        for sentence, where in hazards.cases_by_sentence(cases).items()
    ]
    if not (cut or risks):
        return None
    return Section.render(
        "safety",
        "durability",
        risks=risks,
        columns=["case", "by the manuals", "verdict", "states", *OUTCOMES],
        rows=[_row(case) for case in cases],
        ids=case_ids(cases),
        cases=[_case(case, result) for case, result in cut],
        is_open=len(cut) <= _FEW,
        several=summarise_durability(cases),
        bound=BOUND,
        shares=SHARES,
        not_modelled=sorted({model_limits(*each) for each in cut}),
        run=run,
        experiment=summary.name,
    )


def _row(case: CaseSummary) -> list[Cell]:
    manuals = hazards.manuals(case)
    result = case.durability
    if result is None:
        return [case.label, manuals, NOT_TESTED, *(["–"] * (1 + len(OUTCOMES)))]
    verdict = "proven unsafe" if result.is_unsafe else "not refuted"
    counts = [f"{result.outcomes[name]:,}" for name in OUTCOMES]
    noted = NotedCell(verdict, contradiction(case), "risk")
    return [case.label, manuals, noted, f"{result.states:,}", *counts]


def _case(case: CaseSummary, result: Durability) -> dict[str, Any]:
    return {
        "case": case.case_id,
        "label": case.label,
        "soft": outcome_words(case),
        "sentence": verdict_sentence(case),
        "worst": " ".join(
            filter(None, (worst_sentence(case), needs_sentence(case), boot_sentence(case)))
        ),
        "causes": cause_sentences(case),
        "strip": strip(case),
        "kinds": [
            [kind, *(f"{counts[name]:,}" for name in OUTCOMES)]
            for kind, counts in result.outcomes_by_kind.items()
        ],
        "kind_columns": ["state", *OUTCOMES],
    }


def strip(case: CaseSummary) -> dict[str, Any] | None:
    """Return the run's time as a strip: states in which nothing was lost above a line, harm below.

    None where the power of the case was not cut.
    """
    result = case.durability
    if result is None or not result.moments:
        return None
    most = max(1, *(sum(moment.outcomes.values()) for moment in result.moments))
    return {
        "width": _WIDTH,
        "height": _ABOVE + _BELOW,
        "line": _ABOVE,
        "bars": [
            bar
            for place, moment in enumerate(result.moments)
            for bar in _bars(place, moment, most, len(result.moments))
        ],
        "end": text.duration(result.moments[-1].end_ns),
        "key": [
            {"name": name, "colour": COLOURS[name], "count": f"{result.outcomes[name]:,}"}
            for name in OUTCOMES
            if result.outcomes[name]
        ],
        "label": f"{case.label}: states by the moment of the power cut. {moments(case)}",
        "moments": moments(case),
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
