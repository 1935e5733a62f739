"""Lays the cases of one experiment out as the rows of a grouped chart; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jojlab.analysis.figures.figure import FIGURES
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.report.words import survival, text

Row = dict[str, Any]

# The keys of a chart that name an axis, and the column of what stands there.
_AXES = {"groups": "group", "bars": "bar", "panels": "panel"}


def rows(part: Part, summary: RunSummary, asked: Mapping[str, Any]) -> list[Row]:
    """Return a row per case that the chart shows: group, bar, panel, value, low, high, risk; and
    `partial`, which says how many seeds a case has that lacks some.

    `stated` is what was printed of that case alone, where something was. All are in the unit of
    text.axis_unit. A case without a value has `absent` instead, which says why; so has a place that
    no case of the experiment is for.
    """
    figure = str(asked["figure"])
    if figure not in FIGURES:  # of a run that another joj made
        return []
    _, per_unit = text.axis_unit(figure)
    stated = {
        point.label: found.theirs / per_unit
        for found in part.statements
        if found.kind == "value" and found.figure == figure and found.theirs is not None
        for point in found.points
    }
    found = []
    for case in summary.cases:
        if case.case_id not in part.labels or not _shown(asked.get("case", {}), part, case):
            continue
        label = part.labels[case.case_id]
        place: Row = {"case": label} | {
            key: _coordinate(part, case, str(asked.get(axis, ""))) for axis, key in _AXES.items()
        }
        if figure not in case.figures.median:  # a live run without a tracer has fewer
            status = "not counted" if case.figures.seeds else f"{case.status}: {case.reason}"
            found.append({**place, "absent": status})
            continue
        low, high = case.figures.spread[figure]
        found.append(
            {
                **place,
                "risk": survival.risk(case),
                "survives": survival.short(case),
                "partial": summary.partial(case),
                "value": case.figures.median[figure] / per_unit,
                "low": low / per_unit,
                "high": high / per_unit,
                "stated": stated.get(label),
            }
        )
    return found + _not_asked(found) if any("value" in row for row in found) else []


def _not_asked(rows: list[Row]) -> list[Row]:
    """Return a row for every place in a panel that no case of the experiment is for."""
    there = {(row["panel"], row["group"], row["bar"]) for row in rows}
    bars = dict.fromkeys(row["bar"] for row in rows)
    return [
        {"case": "", "panel": panel, "group": group, "bar": bar, "absent": "not in the experiment"}
        for panel, group in dict.fromkeys((row["panel"], row["group"]) for row in rows)
        for bar in bars
        if (panel, group, bar) not in there
    ]


def _coordinate(part: Part, case: CaseSummary, axis: str) -> str:
    if axis == "variant":
        return part.variant_of.get(case.case_id, "")
    return str(case.case.get(axis, "")) if axis else ""


def _shown(selector: Mapping[str, Any], part: Part, case: CaseSummary) -> bool:
    return all(
        _coordinate(part, case, name) in [str(w) for w in (wanted if isinstance(wanted, list)
                                                           else [wanted])]
        for name, wanted in selector.items()
    )  # fmt: skip
