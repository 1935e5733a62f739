"""Sections about one experiment: its charts, what was published, its variants; and the first screen
of a study of several experiments.

Gets a part of a run with its statements evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part, Verdicts, statement_rows, verdicts
from jojlab.analysis.study.published import Point, Statement
from jojlab.analysis.study.tables import ComparedTable
from jojlab.foundation.lazy import alt
from jojlab.model.figures import FIGURES
from jojlab.report import durability, hazards
from jojlab.report.answer import answer_lines
from jojlab.report.overview import overview_table
from jojlab.report.shared import text, vega
from jojlab.report.shared.template import Cell, NotedCell, Section, Specs
from jojlab.report.shared.vega import Datasets, Rows
from jojlab.report.statements import (
    case_words,
    error,
    failures,
    measured_cell,
    measured_value,
    percent_change,
    published_value,
    reasons,
    result_words,
    software_columns,
    statement_verdict,
    table_verdict,
    title,
)

Row = dict[str, Any]

# The keys of a chart that name an axis, and the column of what stands there.
_AXES = {"groups": "group", "bars": "bar", "panels": "panel"}


def grouped_rows(part: Part, summary: RunSummary, chart: Mapping[str, Any]) -> list[Row]:
    """Return a row per case that the chart shows: group, bar, panel, value, low, high, risk; and
    `partial`, which says how many seeds a case has that lacks some.

    `stated` is what was printed of that case alone, where something was. All are in the unit of
    text.axis_unit. A case without a value has `absent` instead, which says why; so has a place that
    no case of the experiment is for.
    """
    figure = str(chart["figure"])
    if figure not in FIGURES:  # of a run that another joj made
        return []
    _, per_unit = text.axis_unit(figure)
    stated = {
        point.label: result.published_value / per_unit
        for result in part.statements
        if result.kind == "value" and result.figure == figure and result.published_value is not None
        for point in result.points
    }
    result = []
    for case in summary.cases:
        if case.case_id not in part.labels or not _is_selected(chart.get("case", {}), part, case):
            continue
        label = part.labels[case.case_id]
        place: Row = {"case": label} | {
            key: _coordinate(part, case, str(chart.get(axis, ""))) for axis, key in _AXES.items()
        }
        if figure not in case.figures.median:  # a live run without a tracer has fewer
            status = "not counted" if case.figures.seeds else f"{case.status}: {case.reason}"
            result.append({**place, "absent": status})
            continue
        low, high = case.figures.spread[figure]
        result.append(
            {
                **place,
                "risk": durability.risk(case),
                "durability": durability.outcome_words(case),
                "partial": summary.partial(case),
                "value": case.figures.median[figure] / per_unit,
                "low": low / per_unit,
                "high": high / per_unit,
                "stated": stated.get(label),
            }
        )
    return result + _absent_rows(result) if any("value" in row for row in result) else []


def _absent_rows(rows: list[Row]) -> list[Row]:
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


def _is_selected(selector: Mapping[str, Any], part: Part, case: CaseSummary) -> bool:
    return all(
        _coordinate(part, case, name) in [str(w) for w in (wanted if isinstance(wanted, list)
                                                           else [wanted])]
        for name, wanted in selector.items()
    )  # fmt: skip


# Okabe and Ito's, in an order in which neighbours differ in lightness too.
BARS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A30F", "#8C8C8C")
STATED = "#1c2024"
_HEIGHT = 230
_LETTER = 7  # pixels that a letter of a name takes, about


class Axes(NamedTuple):
    """The names of what groups, bars and panels are; empty where there is one alone."""

    groups: str = ""
    bars: str = ""
    panels: str = ""


NO_AXES = Axes()


def grouped_chart(rows: Rows, figure: str, axes: Axes = NO_AXES) -> dict[str, Any]:
    """Return bars of `value` by `group` and `bar`, a panel for each `panel`; a diamond is `stated`.

    Values are in the unit of text.axis_unit; a row without any has `absent`, which says why. A bar
    whose row has `partial` has an asterisk: its case lacks a seed. `axes` name what the groups,
    bars and panels are.
    """
    data: Datasets = {}
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    width = (vega.WIDTH - 60 * (len(panels) - 1)) // len(panels)
    axis = vega.bar_axis(
        value or 0 for row in rows if "value" in row for value in (row["value"], row["stated"])
    )
    highest = max((row["high"] for row in rows if "value" in row), default=0)
    axis.scale["domain"][1] = max(axis.scale["domain"][1], highest)
    bars = list(dict.fromkeys(row["bar"] for row in rows))
    # The chart's heading says what is shown; a whole sentence would not stand along the axis.
    title = text.axis_unit(figure)[0] or FIGURES[figure].meaning.partition(",")[0]
    drawn = []
    for panel in panels:
        own = [row for row in rows if row["panel"] == panel]
        picture = _panel(data, own, bars, axis, title + axis.suffix, width, axes)
        picture = picture.properties(width=width, height=_HEIGHT)
        # Altair takes no word for "no title" here.
        named = f"{axes.panels} {panel}".strip()
        drawn.append(picture.properties(title=named) if panel else picture)
    return vega.configure(alt.hconcat(*drawn, spacing=30), data)


def _names(groups: list[str], width: int) -> alt.Axis:
    """Return the groups' names: level, or aslant where they would run into each other."""
    longest = max(len(str(group)) for group in groups)
    if longest * _LETTER * len(groups) > width:
        return alt.Axis(labelAngle=-30, labelAlign="right", labelLimit=150)
    return alt.Axis(labelAngle=0, labelLimit=150)


def _panel(
    data: Datasets,
    rows: Rows,
    bars: list[str],
    axis: vega.Axis,
    title: str,
    width: int,
    axes: Axes,
) -> alt.LayerChart:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    place = alt.Chart(vega.named_data(data, rows)).encode(
        x=alt.X("group:N", sort=groups, title=axes.groups or None, axis=_names(groups, width)),
        xOffset=alt.XOffset("bar:N", sort=bars),
    )
    base = place.transform_filter("isValid(datum.value)").encode(
        tooltip=[
            alt.Tooltip("case:N"),
            *(alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("value", "low", "high")),
            alt.Tooltip("risk:N", title="at risk"),
            alt.Tooltip("durability:N"),
            alt.Tooltip("partial:N", title="measured with"),
        ],
    )
    scale = alt.Scale(**axis.scale)
    bar = base.encode(
        y=alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format=",~r")),
        y2=alt.Y2Datum(axis.base),
    )
    height = bar.mark_bar().encode(
        color=alt.Color(
            "bar:N",
            sort=bars,
            scale=alt.Scale(domain=bars, range=list(BARS[: len(bars)])),
            legend=vega.legend(axes.bars) if len(bars) > 1 else None,
        ),
    )
    hatch = vega.hatch(bar).encode(detail="bar:N")
    ends = base.mark_rule(strokeWidth=1.5, color="#8C8C8C").encode(
        y=alt.Y("low:Q", scale=scale), y2="high:Q"
    )
    stated = base.transform_filter("isValid(datum.stated)").mark_point(
        shape="diamond", size=90, filled=True, color=STATED, stroke="white", strokeWidth=1.5
    )
    partial = base.transform_filter("datum.partial").mark_text(text="*", dy=-4, fontSize=15)
    absent = place.transform_filter("isValid(datum.absent)").mark_text(
        text="×", dy=-6, fontSize=13, color=vega.ABSENT_COLOUR
    )
    absent = absent.encode(
        y=alt.YDatum(axis.base, scale=scale),
        tooltip=[alt.Tooltip("case:N"), alt.Tooltip("absent:N")],
    )
    layers = [height, hatch, ends, stated.encode(y=alt.Y("stated:Q", scale=scale))]
    if any(row.get("partial") for row in rows):
        layers.append(partial.encode(y=alt.Y("high:Q", scale=scale)))
    if any("absent" in row for row in rows):
        layers.append(absent)
    return alt.layer(*layers)


def anchor(part_name: str) -> str:
    """Return the id of a part's section."""
    return f"part-{part_name}"


def experiment_section(part: Part, summary: RunSummary, run: str, specs: Specs) -> Section:
    """Return everything about one of several experiments in one section."""
    own = summary.part_summary(part)
    return Section.render(
        anchor(part.name),
        "part",
        id=anchor(part.name),
        name=part.name,
        question=part.question,
        charts=_charts(part, summary, specs),
        statements=_statements(part),
        tables=table_rows(part.tables),
        risks=[
            f"{it} ({where})" for it, where in hazards.cases_by_sentence(own.measured_cases).items()
        ],
        names=_variant_names(part),
        notes=part.notes,
        cases=len(own.cases),
        figures=overview_table(own),
        run=run,
    )


def pictures_section(part: Part, summary: RunSummary, specs: Specs) -> Section | None:
    """Draw the charts that the experiment asks for, with its variants and notes."""
    charts, names = _charts(part, summary, specs), _variant_names(part)
    if not (charts["drawn"] or names or part.notes):
        return None
    return Section.render("figure", "figure", charts=charts, names=names, notes=part.notes)


def published_section(part: Part) -> Section | None:
    """Return printed values, changes and orderings beside ours."""
    if not (part.statements or part.tables):
        return None
    tables = table_rows(part.tables)
    return Section.render("published", "statements", statements=_statements(part), tables=tables)


def _charts(part: Part, summary: RunSummary, specs: Specs) -> dict[str, Any]:
    """Return the charts that have anything to draw, name and title, and what marks in them mean."""
    result = []
    drawn: list[Row] = []
    for place, asked in enumerate(part.charts):
        rows = grouped_rows(part, summary, asked)
        if not rows:
            continue
        name = f"{anchor(part.name)}-{place}"
        axes = Axes(*(str(asked.get(key, "")) for key in Axes._fields))
        specs[name] = grouped_chart(rows, str(asked["figure"]), axes)
        result.append((name, str(asked["title"])))
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
    return {"drawn": result, "note": " ".join(notes)}


def table_rows(tables: Iterable[ComparedTable]) -> list[dict[str, Any]]:
    """Return the printed tables, each with ours in the columns beside theirs."""
    result = []
    for table in tables:
        columns = ["", ""]
        for name in table.columns:
            columns += [f"{name}, theirs", "ours"]
        rows: list[list[Cell]] = []
        for group in table.groups:
            for place, row in enumerate(group.rows):
                first = NotedCell(group.name, group.note) if place == 0 else ""
                rows.append([first, row.name])
                for cell in row.cells:
                    rows[-1] += [
                        percent_change(cell.published_change),
                        measured_cell(cell),
                    ]
            rows.append(["", "mean"])
            for theirs, ours in zip(group.published_change, group.measured_change, strict=True):
                rows[-1] += [percent_change(theirs), percent_change(ours)]
        result.append(
            {
                "title": table.title,
                "source": table.source,
                "verdict": table_verdict(table),
                "columns": columns,
                "rows": rows,
            }
        )
    return result


def _statements(part: Part) -> dict[str, Any]:
    """Return the rows of bounds, and of values and changes; or those of all, with each software
    beside the other.
    """
    columns = software_columns(part)
    alone = () if columns else part.statements
    bounds = [result for result in alone if result.kind == "bound"]
    values = [result for result in alone if result.kind != "bound"]
    return {
        "columns": columns,
        "rows": [_statement_row(row) for row in statement_rows(part)] if columns else [],
        "orderings": [_bound(each) for each in bounds],
        "measures": [
            _value(each, point, is_first=place == 0)
            for each in values
            for place, point in enumerate(each.points)
        ],
    }


def _statement_row(row: Sequence[Statement]) -> list[Cell]:
    """Return a statement, theirs, ours with each software, and why ours is another."""
    first = row[0]
    mark = "anchor: the profile is fitted to this" if first.anchor else ""
    return [
        NotedCell(title(first), "\n".join(filter(None, (first.note, first.source)))),
        NotedCell(published_value(first), mark),
        *(NotedCell(result_words(each), failures(each)) for each in row),
        reasons(row),
    ]


def _bound(result: Statement) -> list[Cell]:
    return [
        NotedCell(title(result), result.note),
        statement_verdict(result),
        NotedCell(failures(result), f"Why: {result.reason}" if result.reason else ""),
        result.source,
    ]


def _value(result: Statement, point: Point, *, is_first: bool) -> list[Cell]:
    """Return a row of a statement; its first one has what there is to say of all."""
    mark = "anchor: the profile is fitted to this" if result.anchor else ""
    if result.status == "inferred":
        mark = "inferred, not printed"
    explained = f"Why ours differs: {result.reason}" if result.reason else ""
    lines = [result.note, explained] if is_first else []
    return [
        NotedCell(title(result), "\n".join(filter(None, lines))),
        case_words(point),
        result.source,
        NotedCell(published_value(result), mark),
        measured_value(result, point),
        error(point),
    ]


def _variant_names(part: Part) -> list[tuple[str, str]]:
    """Return what the names of variants mean."""
    return [
        (v.name, v.note or ", ".join(f"{key} = {value}" for key, value in v.fields.items()))
        for v in part.variants
    ]


def verdict_section(summary: RunSummary) -> Section | None:
    """Return the section, or None where no part has a published statement."""
    columns = verdicts(summary.parts)
    if not any(each.whole.orderings or each.whole.errors or each.anchors for each in columns):
        return None
    return Section.render(
        "answer",
        "verdict",
        fits=[*map(fit_words, columns)],
        columns=[_software_words(each) for each in columns],
        parts=[_row(part.name, columns) for part in summary.parts],
        lines=answer_lines(summary),
        notes=summary.notes,
    )


def _software_words(result: Verdicts) -> str:
    return f", software of {result.software}" if result.software else ""


def fit_words(result: Verdicts) -> str:
    """Say of one software how near the predictions are, and what the device is fitted to."""
    sentences = []
    if predictions := len(result.whole.errors):
        verb = "is" if result.close == 1 else "are"
        words = f"{result.close} of {predictions} predictions {verb} within 10 %"
        sentences.append(f"{words}; {result.missing} numbers of the paper could not be had.")
    sentences += [
        f"The device is fitted to one number, {title(fitted)}: {measured_value(fitted, point)} "
        f"for {published_value(fitted)} ({error(point)})."
        for fitted, point in result.anchors
    ]
    software = f"Software of {result.software}: " if result.software else ""
    return software + " ".join(sentences)


def _row(name: str, columns: Sequence[Verdicts]) -> dict[str, Any]:
    """Return a part's row of the table of parts: three cells for each software."""
    cells: list[str] = []
    for column in columns:
        [part] = [each for each in column.parts if each.name == name]
        middle = part.median_error
        cells += [
            f"{part.reproduced} of {part.orderings}" if part.orderings else "–",
            str(len(part.errors)) if part.errors else "–",
            "–" if middle is None else text.percent(middle),
        ]
    return {"name": name, "link": quote(anchor(name)), "cells": cells}
