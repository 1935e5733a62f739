"""Reads [[published]], [[table]] and [[chart]]: what others published, tables of changes that they
printed, and the charts of a report.

A published entry has `source`, `place` in it and `figure`, and is one of these
(docs/experiments.md):

    a value     value, unit, case
    a change    value, unit ("%" or "times"), case, against: the change from against to case
    a bound     like a change, with holds = "above" or "below"; without a value: figures alone
    a bound of changes    like a bound, with than: the change is above (below) that of other cases
    missing     status = "missing": published somewhere, but not available

A cell of a table is about the case that its column, its group and its row select together. A chart
has these keys; an axis is a field of a case, or "variant":

    title    what the chart shows
    figure   the figure that gives the height of a bar
    groups   the axis of the groups of bars, such as "filesystem"
    bars     the axis of the bars within a group; "" for one bar
    panels   the axis of panels side by side; "" for one panel
    case     fields that select the cases; all cases by default
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jojlab.experiment.cases import Case
from jojlab.foundation.document import check_document
from jojlab.foundation.errors import UseError, refuse_unknown
from jojlab.model.fields import field_named
from jojlab.model.figures import FIGURES
from jojlab.trace.shapes import Chart, PublishedStatement, PublishedTable, selects

SELECTORS = ("case", "against", "than")


def check_published(
    entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str
) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for place, entry in _number_entries(entries, "published", where):
        published = check_document(
            entry, PublishedStatement, place, "docs/experiments.md has the forms"
        )
        if published.status != "missing":
            check_figure(published.figure, place)
        for name in SELECTORS:
            check_selector(entry.get(name, {}), variants, f"{place}: {name}")


def refuse_idle(
    published: Iterable[Mapping[str, Any]],
    tables: Iterable[Mapping[str, Any]],
    cases: Sequence[Case],
    where: str,
) -> None:
    """Raise UseError for a selector of checked entries that is about none of the cases: a slip."""
    known = [{**case.settings, "variant": case.variant} for case in cases]
    of_tables = (
        (place, _selectors(entry)) for place, entry in _number_entries(tables, "table", where)
    )
    of_published = (
        (place, [(name, entry.get(name, {})) for name in ("case", "against")])
        for place, entry in _number_entries(published, "published", where)
        if entry.get("status") != "missing"
    )
    for place, selectors in (*of_published, *of_tables):
        for name, selector in selectors:
            if not any(selects(selector, each) for each in known):
                raise UseError(
                    f"{place}: {name} = {dict(selector)} is no case of this experiment",
                    "correct it, or add the case to [matrix]",
                )


def check_figure(figure: str, place: str) -> None:
    """Raise UseError for a figure that no analysis makes."""
    refuse_unknown(figure, FIGURES, f"{place}: no figure {figure!r}")


def check_selector(selector: Mapping[str, Any], variants: Sequence[str], place: str) -> None:
    """Check a table of fields, each with a value or a list of them."""
    for name, given in selector.items():
        values = given if isinstance(given, list) else [given]
        if not values:
            raise UseError(f"{place}: {name} has no value", f'{name} = ["...", "..."]')
        for value in values:
            if name != "variant":
                field_named(name, place).check(value, place)
            else:
                remedy = "" if variants else "there are no variants"
                refuse_unknown(str(value), variants, f"{place}: no variant {value!r}", remedy)


def check_tables(entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for place, entry in _number_entries(entries, "table", where):
        table = check_document(entry, PublishedTable, place, "docs/experiments.md has the form")
        for figure in {table.figure, *(each.figure or table.figure for each in table.columns)}:
            check_figure(figure, place)
        for name, selector in _selectors(entry):
            check_selector(selector, variants, f"{place}: {name}")


def _number_entries(
    entries: Iterable[Mapping[str, Any]], kind: str, where: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, entry in enumerate(entries, 1):
        yield f"{where}: [[{kind}]] number {number}", entry


def _selectors(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every selector of a table by its name in an error."""
    yield "against", entry["against"]
    rows = [row for group in entry["group"] for row in group["rows"]]
    for each in (*entry["columns"], *entry["group"], *rows):
        yield f"{each['name']}: case", each.get("case", {})


def check_charts(entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for place, entry in _number_entries(entries, "chart", where):
        chart = check_document(entry, Chart, place, "docs/experiments.md has the form")
        check_figure(chart.figure, place)
        axes = [axis for axis in (chart.groups, chart.bars, chart.panels) if axis]
        for axis in axes:
            if axis != "variant":
                field_named(axis, place)
        if len(set(axes)) < len(axes):
            raise UseError(f"{place}: an axis is named twice", "name each axis once")
        check_selector(chart.case, variants, f"{place}: case")
