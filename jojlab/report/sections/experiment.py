"""Sections of the report about one experiment: its charts, what was published, its variants.

Gets a part of a run with its statements evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.analysis.study.published import Point, Statement
from jojlab.report.charts import grouped, grouped_rows
from jojlab.report.sections.elements import (
    Cell,
    Specs,
    ask,
    banner,
    chart,
    details,
    paragraph,
    section,
    table,
)
from jojlab.report.sections.overview import overview_table
from jojlab.report.words import hazards
from jojlab.report.words import statements as words

LEGEND = (
    '"Theirs" are published values, of other devices and kernels; "ours" are from this run. A '
    "change compares two cases that differ in nothing else; its error is that of the ratio."
)


def anchor(part: Part) -> str:
    """Return the id of a part's section."""
    return anchor_of(part.name)


def anchor_of(name: str) -> str:
    """Return the id of the section of the part of that name."""
    return f"part-{name}"


def whole(part: Part, summary: RunSummary, run: str, specs: Specs) -> str:
    """Everything about one of several experiments in one section."""
    own = summary.of_part(part)
    return section(
        anchor(part),
        f"{part.name}: {part.question}",
        *_charts(part, summary, specs),
        *_statements(part),
        *_risks(own.measured),
        *_notes(part),
        details("The figures", f"{len(own.cases)} cases", overview_table(own)),
        ask(f"joj show {run}", f"joj run experiments/{part.name}"),
    )


def pictures(part: Part, summary: RunSummary, specs: Specs) -> str:
    """Draw the charts that the experiment asks for, with its variants and notes."""
    parts = [*_charts(part, summary, specs), *_notes(part)]
    return section("figure", "In one picture", *parts) if any(parts) else ""


def published(part: Part) -> str:
    """Printed values, changes and orderings beside ours."""
    if not part.statements:
        return ""
    return section("published", "Published beside ours", *_statements(part))


def _charts(part: Part, summary: RunSummary, specs: Specs) -> list[str]:
    found = []
    drawn: list[grouped_rows.Row] = []
    for place, asked in enumerate(part.charts):
        rows = grouped_rows.rows(part, summary, asked)
        if not rows:
            continue
        name = f"{anchor(part)}-{place}"
        axes = grouped.Axes(*(str(asked.get(key, "")) for key in grouped.Axes._fields))
        specs[name] = grouped.grouped(rows, str(asked["figure"]), axes)
        found += [f"<h3>{escape(str(asked['title']))}</h3>", chart(name, asked["title"])]
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
    return [*found, paragraph(" ".join(notes), "soft")] if notes else found


def _statements(part: Part) -> list[str]:
    bounds = [found for found in part.statements if found.kind == "bound"]
    values = [found for found in part.statements if found.kind != "bound"]
    found = []
    if bounds:
        heads = ["statement", "verdict", "where it does not hold", "source"]
        found += [
            "<h3>Stated orderings</h3>",
            table(heads, [_bound(each) for each in bounds], words=4),
        ]
    if values:
        heads = ["statement", "case", "source", "theirs", "ours", "error"]
        rows = [
            _value(each, point, is_first=place == 0)
            for each in values
            for place, point in enumerate(each.points)
        ]
        found += [
            "<h3>Stated values</h3>",
            paragraph(LEGEND, "soft"),
            table(heads, rows, words=3),
        ]
    return found


def _bound(found: Statement) -> list[Cell]:
    failed = [point for point in found.points if point.holds is False]
    return [
        (words.title(found), found.note),
        words.verdict(found),
        (
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
        (words.title(found), "\n".join(filter(None, said))),
        words.compared(point),
        found.source,
        (words.theirs(found), mark),
        words.ours(found, point),
        words.error(point),
    ]


def _risks(cases: Sequence[CaseSummary]) -> list[str]:
    risky = [
        f"{sentence} ({hazards.named(labels, len(cases))})"
        for sentence, labels in hazards.by_sentence(cases).items()
    ]
    return [banner("warn", "At risk with these settings", risky)]


def _notes(part: Part) -> list[str]:
    """What the names mean, and the notes."""
    plain = [
        (v.name, v.note or ", ".join(f"{key} = {value}" for key, value in v.fields.items()))
        for v in part.variants
    ]
    parts = []
    if plain:
        parts += ["<h3>What the names mean</h3>", table(["name", ""], plain, words=2)]
    if part.notes:
        parts += ["<h3>Notes</h3>", *(paragraph(note) for note in part.notes)]
    return parts
