"""Reads [[published]]: what others published, as data to compare with our figures.

An entry has `source`, `place` in it and `figure`, and is one of these (docs/experiments.md):

    a value     value, unit, case
    a change    value, unit ("%" or "times"), case, against: the change from against to case
    a bound     like a change, with holds = "above" or "below"; without a value: figures alone
    a bound of changes    like a bound, with than: the change is above (below) that of other cases
    missing     status = "missing": published somewhere, but not available
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jojlab.experiment.cases import Case
from jojlab.foundation.document import checked
from jojlab.foundation.errors import UseError
from jojlab.foundation.nearest import nearest
from jojlab.model.fields import field_named
from jojlab.model.figures import FIGURES
from jojlab.trace.shapes import Published

SELECTORS = ("case", "against", "than")


def check_published(
    entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str
) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[published]] number {number}"
        published = checked(entry, Published, place, "docs/experiments.md has the forms")
        if published.status != "missing":
            check_figure(published.figure, place)
        for name in SELECTORS:
            check_selector(entry.get(name, {}), variants, f"{place}: {name}")


def refuse_idle(entries: Iterable[Mapping[str, Any]], cases: Sequence[Case], where: str) -> None:
    """Raise UseError for an entry that is about none of the cases: a slip in its selector."""
    for number, entry in enumerate(entries, 1):
        for name in ("case", "against"):
            selector = entry.get(name, {})
            if entry.get("status") == "missing" or any(selects(selector, c) for c in cases):
                continue
            raise UseError(
                f"{where}: [[published]] number {number}: {name} = {dict(selector)} is no case of "
                "this experiment",
                "correct it, or add the case to [matrix]",
            )


def selects(selector: Mapping[str, Any], case: Case) -> bool:
    """Whether a case has all that a selector names."""
    values = {**case.settings, "variant": case.variant}
    return all(values.get(k) in (v if isinstance(v, list) else [v]) for k, v in selector.items())


def check_figure(figure: str, place: str) -> None:
    """Raise UseError for a figure that no analysis makes."""
    if figure not in FIGURES:
        raise UseError(
            f"{place}: no figure {figure!r}{nearest(figure, FIGURES)}",
            f"one of: {', '.join(FIGURES)}",
        )


def check_selector(selector: Mapping[str, Any], variants: Sequence[str], place: str) -> None:
    """Check a table of fields, each with a value or a list of them."""
    for name, given in selector.items():
        values = given if isinstance(given, list) else [given]
        if not values:
            raise UseError(f"{place}: {name} has no value", f'{name} = ["...", "..."]')
        for value in values:
            if name != "variant":
                field_named(name, place).check(value, place)
            elif value not in variants:
                raise UseError(
                    f"{place}: no variant {value!r}{nearest(str(value), variants)}",
                    f"one of: {', '.join(variants)}" if variants else "there are no variants",
                )
