"""Reads [[table]]: tables of changes that others printed, to show ours beside them.

A cell is about the case that its column, its group and its row select together
(docs/experiments.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jojlab.experiment.cases import Case
from jojlab.experiment.published import check_figure, check_selector, selects
from jojlab.foundation.document import checked
from jojlab.foundation.errors import UseError
from jojlab.trace.shapes import PublishedTable


def check_tables(entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for place, entry in _placed(entries, where):
        table = checked(entry, PublishedTable, place, "docs/experiments.md has the form")
        for figure in {table.figure, *(each.figure or table.figure for each in table.columns)}:
            check_figure(figure, place)
        for name, selector in _selectors(entry):
            check_selector(selector, variants, f"{place}: {name}")


def refuse_idle_tables(
    entries: Iterable[Mapping[str, Any]], cases: Sequence[Case], where: str
) -> None:
    """Raise UseError for a selector of checked entries that is about none of the cases: a slip."""
    for place, entry in _placed(entries, where):
        for name, selector in _selectors(entry):
            if not any(selects(selector, case) for case in cases):
                raise UseError(
                    f"{place}: {name} = {dict(selector)} is no case of this experiment",
                    "correct it, or add the case to [matrix]",
                )


def _placed(
    entries: Iterable[Mapping[str, Any]], where: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, entry in enumerate(entries, 1):
        yield f"{where}: [[table]] number {number}", entry


def _selectors(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give every selector of a table by its name in an error."""
    yield "against", entry["against"]
    rows = [row for group in entry["group"] for row in group["rows"]]
    for each in (*entry["columns"], *entry["group"], *rows):
        yield f"{each['name']}: case", each.get("case", {})
