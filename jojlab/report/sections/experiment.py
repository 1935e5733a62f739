"""Sections of the report about one experiment: its charts, what was published, its variants.

Gets a part of a run with its statements evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.analysis.study.published import Point, Statement
from jojlab.analysis.study.tables import ComparedTable
from jojlab.report.charts import grouped, grouped_rows
from jojlab.report.sections.overview import overview_table
from jojlab.report.sections.template import Cell, Noted, Section, Specs, render
from jojlab.report.words import hazards
from jojlab.report.words import statements as words
from jojlab.report.words import tables as table_words


def anchor(part: Part) -> str:
    """Return the id of a part's section."""
    return anchor_of(part.name)


def anchor_of(name: str) -> str:
    """Return the id of the section of the part of that name."""
    return f"part-{name}"


def whole(part: Part, summary: RunSummary, run: str, specs: Specs) -> Section:
    """Everything about one of several experiments in one section."""
    own = summary.of_part(part)
    html = render(
        "report/sections/part.html",
        id=anchor(part),
        name=part.name,
        question=part.question,
        charts=_charts(part, summary, specs),
        statements=_statements(part),
        tables=table_rows(part.tables),
        risks=_risks(own.measured),
        names=_names(part),
        notes=part.notes,
        cases=len(own.cases),
        figures=overview_table(own),
        run=run,
    )
    return Section(anchor(part), html)


def pictures(part: Part, summary: RunSummary, specs: Specs) -> Section | None:
    """Draw the charts that the experiment asks for, with its variants and notes."""
    charts, names = _charts(part, summary, specs), _names(part)
    if not (charts["drawn"] or names or part.notes):
        return None
    html = render("report/sections/figure.html", charts=charts, names=names, notes=part.notes)
    return Section("figure", html)


def published(part: Part) -> Section | None:
    """Printed values, changes and orderings beside ours."""
    if not (part.statements or part.tables):
        return None
    html = render(
        "report/sections/published.html",
        statements=_statements(part),
        tables=table_rows(part.tables),
    )
    return Section("published", html)


def _charts(part: Part, summary: RunSummary, specs: Specs) -> dict[str, Any]:
    """Return the charts that have anything to draw, name and title, and what marks in them mean."""
    found = []
    drawn: list[grouped_rows.Row] = []
    for place, asked in enumerate(part.charts):
        rows = grouped_rows.rows(part, summary, asked)
        if not rows:
            continue
        name = f"{anchor(part)}-{place}"
        axes = grouped.Axes(*(str(asked.get(key, "")) for key in grouped.Axes._fields))
        specs[name] = grouped.grouped(rows, str(asked["figure"]), axes)
        found.append((name, str(asked["title"])))
        drawn += rows
    notes = [
        words
        for words, is_drawn in (
            ("A diamond is the published value.", any(r.get("stated") for r in drawn)),
            ("Hatched: at risk with these settings.", any(r.get("risk") for r in drawn)),
            ("×: no value; point at it to see why.", any("absent" in r for r in drawn)),
        )
        if is_drawn
    ]
    return {"drawn": found, "note": " ".join(notes)}


def table_rows(tables: Iterable[ComparedTable]) -> list[dict[str, Any]]:
    """Return the printed tables, each with ours in the columns beside theirs."""
    found = []
    for table in tables:
        columns = ["", ""]
        for name in table.columns:
            columns += [f"{name}, theirs", "ours"]
        rows: list[list[Cell]] = []
        for group in table.groups:
            for place, row in enumerate(group.rows):
                first = Noted(group.name, group.note) if place == 0 else ""
                rows.append([first, row.name])
                for cell in row.cells:
                    rows[-1] += [table_words.change(cell.theirs), table_words.cell(cell)]
            rows.append(["", "mean"])
            for theirs, ours in zip(group.theirs, group.ours, strict=True):
                rows[-1] += [table_words.change(theirs), table_words.change(ours)]
        found.append(
            {
                "title": table.title,
                "source": table.source,
                "verdict": table_words.verdict(table),
                "columns": columns,
                "rows": rows,
            }
        )
    return found


def _statements(part: Part) -> dict[str, Any]:
    """Return the rows of bounds, and of values and changes."""
    bounds = [found for found in part.statements if found.kind == "bound"]
    values = [found for found in part.statements if found.kind != "bound"]
    return {
        "orderings": [_bound(each) for each in bounds],
        "measures": [
            _value(each, point, is_first=place == 0)
            for each in values
            for place, point in enumerate(each.points)
        ],
    }


def _bound(found: Statement) -> list[Cell]:
    failed = [point for point in found.points if point.holds is False]
    return [
        Noted(words.title(found), found.note),
        words.verdict(found),
        Noted(
            "; ".join(f"{words.compared(p)}: {words.ours(found, p)}" for p in failed),
            f"Why: {found.explanation}" if found.missed and found.explanation else "",
        ),
        found.source,
    ]


def _value(found: Statement, point: Point, *, is_first: bool) -> list[Cell]:
    """Return a row of a statement; its first one has what there is to say of all."""
    mark = "anchor: the profile is fitted to this" if found.anchor else ""
    if found.status == "inferred":
        mark = "inferred, not printed"
    explained = f"Why ours differs: {found.explanation}" if found.missed else ""
    explained = explained if found.explanation else ""
    said = [found.note, explained] if is_first else []
    return [
        Noted(words.title(found), "\n".join(filter(None, said))),
        words.compared(point),
        found.source,
        Noted(words.theirs(found), mark),
        words.ours(found, point),
        words.error(point),
    ]


def _risks(cases: Sequence[CaseSummary]) -> list[str]:
    return [
        f"{sentence} ({hazards.named(labels, len(cases))})"
        for sentence, labels in hazards.by_sentence(cases).items()
    ]


def _names(part: Part) -> list[tuple[str, str]]:
    """Return what the names of variants mean."""
    return [
        (v.name, v.note or ", ".join(f"{key} = {value}" for key, value in v.fields.items()))
        for v in part.variants
    ]
