"""The sections that open a run: what is missing, and one line for every case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.sections.template import Cell, Noted, Section, case_anchor, render
from jojlab.report.words import hazards, survival, text
from jojlab.report.words.overview import case_title, overview_columns, paying_note

_MOST_FAILED = 12  # cases without a result that are named at the top


def warnings(summary: RunSummary) -> Markup:
    """Say loudly what is missing."""
    lost = [f"{case.label}: {'; '.join(case.missing.in_words)}" for case in summary.incomplete]
    told = [
        (summary.partial(case), f"{case.label}: {case.status}. {case.reason}")
        for case in summary.unfinished
    ]
    failed = [words for partial, words in told if not partial]
    lacking = [f"{words} ({partial})" for partial, words in told if partial]
    if len(failed) > _MOST_FAILED:
        more = len(failed) - _MOST_FAILED
        failed[_MOST_FAILED:] = [f"and {more} more: see How it was measured, Cases without figures"]
    notes = [f"{case.label}: {note}" for case in summary.cases for note in case.missing.notes]
    clocks = [text.clocks([clock]) for clock in summary.clocks]
    return render(
        "report/sections/warnings.html",
        lost=lost,
        failed=failed,
        lacking=lacking,
        notes=notes,
        clocks=clocks if len(clocks) > 1 else [],
    )


def overview(summary: RunSummary, run: str) -> Section:
    """One line per case."""
    return Section(
        "overview",
        render(
            "report/sections/overview.html",
            cases=overview_table(summary),
            paying=paying_note(summary),
            run=run,
        ),
    )


def overview_table(summary: RunSummary) -> dict[str, Any]:
    """Return columns, a row per case, also for those without figures, and the cases' ids."""
    columns = overview_columns(summary)
    rows: list[list[Cell]] = []
    for case in summary.cases:
        if case.figures.seeds:
            cells: list[Cell] = [with_spread(case, figure) for _, figure in columns]
        else:
            cells = [case.status, *(["–"] * (len(columns) - 1))]
        survives = Noted(survival.short(case), survival.contradiction(case), "risk")
        name = [summary.partial(case), hazards.mark(case)]
        link = case_anchor(case.case_id) if case.bill and not summary.is_composed else ""
        shown = Noted(case.label, "\n".join(filter(None, name)), "risk", link=link)
        rows.append([shown, survives, *cells])
    titles = [case_title(summary), "survives", *(title for title, _ in columns)]
    return {"columns": titles, "rows": rows, "ids": case_ids(summary.cases)}


def case_ids(cases: Iterable[CaseSummary]) -> list[str]:
    """Return the ids of the cases that the rows of a table are of."""
    return [case.case_id for case in cases]


def name_of(summary: RunSummary, case: CaseSummary) -> Cell:
    """Return the first cell of a case's row: its name, and below it what must be known of it."""
    marks = [summary.partial(case), survival.mark(case)]
    return Noted(case.label, "\n".join(filter(None, marks)), "risk")


def at_risk(summary: RunSummary, style: str = "Hatched") -> str:
    """Return what a chart's note says of the cases that are marked so; nothing where none is."""
    if not any(survival.risk(case) for case in summary.measured):
        return ""
    return f" {style}: at risk; the table shows the risk below the name."


def with_spread(case: CaseSummary, figure: str) -> Cell:
    """Return a figure of a case, and below it the smallest and largest of its seeds."""
    if figure not in case.figures.median:
        return "–"
    return Noted(
        text.figure(figure, case.figures.median[figure]),
        text.spread(figure, case.figures.spread[figure]).strip("[]"),
        value=case.figures.median[figure],
    )
