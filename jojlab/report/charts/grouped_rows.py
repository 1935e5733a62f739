"""Lays the cases of one experiment out as the rows of a grouped chart; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.report.words import text

Row = dict[str, Any]


def rows(part: Part, summary: RunSummary, asked: Mapping[str, Any]) -> list[Row]:
    """Return a row per measured case that the chart shows: group, bar, panel, value, low, high.

    `stated` is what was printed of that case alone, where something was. All are in the unit of
    text.axis_unit.
    """
    figure = str(asked["figure"])
    _, per_unit = text.axis_unit(figure)
    stated = {
        point.label: found.theirs / per_unit
        for found in part.statements
        if found.kind == "value" and found.figure == figure and found.theirs is not None
        for point in found.points
    }
    found = []
    for case in summary.measured:
        if case.case_id not in part.labels or not _shown(asked.get("case", {}), part, case):
            continue
        if figure not in case.figures.median:  # a live run without a tracer has fewer
            continue
        label = part.labels[case.case_id]
        low, high = case.figures.spread[figure]
        found.append(
            {
                "case": label,
                "group": _coordinate(part, case, str(asked["groups"])),
                "bar": _coordinate(part, case, str(asked.get("bars", ""))),
                "panel": _coordinate(part, case, str(asked.get("panels", ""))),
                "value": case.figures.median[figure] / per_unit,
                "low": low / per_unit,
                "high": high / per_unit,
                "stated": stated.get(label),
            }
        )
    return found


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
