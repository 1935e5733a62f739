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
from jojlab.experiment.fields import field_named, nearest
from jojlab.foundation.errors import UseError

REQUIRED = ("source", "place", "figure")
TEXTS = ("source", "place", "figure", "unit", "says", "note", "explanation", "quote")
SELECTORS = ("case", "against", "than")
STATUSES = ("stated", "inferred", "missing")
HOLDS = ("above", "below")
KEYS = (*TEXTS, "value", "status", "holds", "anchor", *SELECTORS)


def read_published(entries: object, variants: Sequence[str], where: str) -> list[dict[str, Any]]:
    """Check the entries; UseError naming file, entry and key."""
    if not isinstance(entries, list):
        raise UseError(f"{where}: published must be a list of tables", "write [[published]]")
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[published]] number {number}"
        if not isinstance(entry, dict):
            raise UseError(f"{place} is no table", "write [[published]]")
        _check_words(entry, place)
        for name in SELECTORS:
            check_selector(entry.get(name, {}), variants, f"{place}: {name}")
        _check_together(entry, place)
    return entries


def refuse_idle(entries: Iterable[Mapping[str, Any]], cases: Sequence[Case], where: str) -> None:
    """Raise UseError for an entry that is about none of the cases: a slip in its selector."""
    for number, entry in enumerate(entries, 1):
        for name in ("case", "against"):
            selector = entry.get(name, {})
            if entry.get("status") == "missing" or any(_selects(selector, c) for c in cases):
                continue
            raise UseError(
                f"{where}: [[published]] number {number}: {name} = {dict(selector)} is no case of "
                "this experiment",
                "correct it, or add the case to [matrix]",
            )


def _selects(selector: Mapping[str, Any], case: Case) -> bool:
    values = {**case.settings, "variant": case.variant}
    return all(values.get(k) in (v if isinstance(v, list) else [v]) for k, v in selector.items())


def _check_words(entry: Mapping[str, Any], place: str) -> None:
    for key in entry:
        if key not in KEYS:
            raise UseError(
                f"{place} has no key {key!r}{nearest(key, KEYS)}", f"known: {', '.join(KEYS)}"
            )
    for key in REQUIRED:
        if key not in entry:
            raise UseError(f"{place} lacks {key}", "say what was printed, and where")
    for key in TEXTS:
        if not isinstance(entry.get(key, ""), str):
            raise UseError(f"{place}: {key} must be text, not {entry[key]!r}", "put it in quotes")
    if entry.get("status") != "missing":
        check_figure(entry["figure"], place)
    for key, words in (("status", STATUSES), ("holds", HOLDS)):
        if key in entry and entry[key] not in words:
            raise UseError(
                f"{place}: {key} cannot be {entry[key]!r}{nearest(str(entry[key]), words)}",
                f"one of: {', '.join(words)}",
            )
    if not isinstance(entry.get("anchor", False), bool):
        raise UseError(f"{place}: anchor must be true or false", "anchor = true")


def check_figure(figure: str, place: str) -> None:
    """Raise UseError for a figure that no analysis makes."""
    # Here, as the figures come with the analyses, which take longer to load than a file to read.
    from jojlab.analysis.figures.case_figures import FIGURES

    if figure not in FIGURES:
        raise UseError(
            f"{place}: no figure {figure!r}{nearest(figure, FIGURES)}",
            f"one of: {', '.join(FIGURES)}",
        )


def check_selector(selector: object, variants: Sequence[str], place: str) -> None:
    """Check a table of fields, each with a value or a list of them."""
    if not isinstance(selector, dict):
        raise UseError(f"{place} must be a table of fields", '{ filesystem = "ext4" }')
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


def _check_together(entry: Mapping[str, Any], place: str) -> None:
    """Check that the keys make one of the forms that the head of this file names."""
    missing, bound = entry.get("status") == "missing", "holds" in entry
    if missing and "value" in entry:
        raise UseError(f"{place}: a missing value is given", "drop value, or the status")
    if not missing and not bound and "value" not in entry:
        raise UseError(f"{place} lacks value", 'give it, or status = "missing"')
    value = entry.get("value", 0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e18:
        raise UseError(f"{place}: value must be a number, not {value!r}", "its unit stands in unit")
    if "against" not in entry:
        for key in ("holds", "than"):
            if key in entry:
                raise UseError(f"{place}: {key} without against", "say against which cases")
        return
    if "than" in entry and ("value" in entry or not bound):
        raise UseError(
            f"{place}: than compares two changes", 'with holds = "above" or "below", and no value'
        )
    unit = entry.get("unit", "")
    if "value" in entry and unit not in ("%", "times"):
        raise UseError(
            f"{place}: the unit of a change cannot be {unit!r}", 'unit = "%" or unit = "times"'
        )
    if "value" in entry and (value <= -100 if unit == "%" else value <= 0):
        raise UseError(f"{place}: a change of {value} {unit} leaves nothing", "correct value")
    if entry.get("case") == entry.get("against"):
        raise UseError(f"{place}: case and against are the same", "name what they differ in")
