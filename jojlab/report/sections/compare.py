"""The section that compares two cases of a run: figures and bills beside each other.

Gets a RunSummary; gives the section's place and the data of every case, from which compare.js
fills it as the reader chooses.
"""

from __future__ import annotations

from typing import Any

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.charts.chart_rows import named
from jojlab.report.sections.template import Section, render
from jojlab.report.words import survival, text
from jojlab.report.words.overview import overview_columns

_PARTS = {"commit": "One commit", **text.LATER_PARTS}


def compare(summary: RunSummary) -> Section | None:
    """Return the section, or None where there are no two cases with figures."""
    if summary.is_composed or len(summary.measured) < 2:
        return None
    cases = [(case.case_id, case.label) for case in summary.measured]
    return Section("compare", render("report/sections/compare.html", cases=cases))


def case_data(summary: RunSummary) -> dict[str, Any]:
    """Return what the page's script knows of the cases.

    `figures` are the rows of the comparison, name and title; `parts` those of bills. Of each case:
    its id, its names in charts, what it risks, its figures (number and text), and its bill (part,
    what, file, cause, requests and bytes of one commit).
    """
    if summary.is_composed:
        return {"figures": [], "parts": [], "cases": []}
    columns = overview_columns(summary)
    titles = _titles(columns)
    return {
        "figures": [[figure, title] for (_, figure), title in zip(columns, titles, strict=True)],
        "parts": list(_PARTS.items()),
        "cases": [
            {
                "id": case.case_id,
                "label": case.label,
                "names": sorted({case.label, named(summary, case)}),
                "risk": survival.risk(case),
                "survives": survival.short(case),
                "figures": {
                    figure: [value, text.figure(figure, value)]
                    for _, figure in columns
                    if (value := case.figures.median.get(figure)) is not None
                },
                "bill": _bill(case),
            }
            for case in summary.cases
        ],
    }


def _titles(columns: list[tuple[str, str]]) -> list[str]:
    """Return the titles of figures as they stand alone: a second p99 is that of the first word."""
    found: list[str] = []
    group = ""
    for title, _ in columns:
        if title.endswith(" p50"):
            group = title.removesuffix(" p50")
        found.append(f"{group} {title}" if title in ("p99", "max") else title)
    return found


def _bill(case: CaseSummary) -> list[list[Any]]:
    if case.bill is None:
        return []
    bill = case.bill
    return [
        [
            row.part,
            row.block_type
            if row.operation in ("write", "flush")
            else f"{row.block_type} ({row.operation})",
            row.file if row.file or row.file_kind == "none" else row.file_kind,
            row.cause,
            round(bill.per_commit(row.requests), 6),
            round(bill.per_commit(row.bytes), 3),
        ]
        for row in bill.rows
    ]
