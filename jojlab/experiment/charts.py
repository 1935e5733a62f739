"""Reads [[chart]]: the charts that an experiment's report shows of its cases.

    title    what the chart shows
    figure   the figure that gives the height of a bar
    groups   the axis of the groups of bars, such as "filesystem"
    bars     the axis of the bars within a group; "" for one bar
    panels   the axis of panels side by side; "" for one panel
    case     fields that select the cases; all cases by default

An axis is a field of a case, or "variant".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jojlab.experiment.fields import field_named, nearest
from jojlab.experiment.published import check_figure, check_selector
from jojlab.foundation.errors import UseError

AXES = ("groups", "bars", "panels")
KEYS = ("title", "figure", *AXES, "case")


def read_charts(entries: object, variants: Sequence[str], where: str) -> list[Mapping[str, Any]]:
    """Check the entries; UseError naming file, entry and key."""
    if not isinstance(entries, list):
        raise UseError(f"{where}: chart must be a list of tables", "write [[chart]]")
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[chart]] number {number}"
        if not isinstance(entry, dict):
            raise UseError(f"{place} is no table", "write [[chart]]")
        for key in entry:
            if key not in KEYS:
                raise UseError(
                    f"{place} has no key {key!r}{nearest(key, KEYS)}", f"known: {', '.join(KEYS)}"
                )
        for key in ("title", "figure", *AXES):
            if not isinstance(entry.get(key, ""), str):
                raise UseError(f"{place}: {key} must be text", "put it in quotes")
        for key in ("title", "figure", "groups"):
            if not entry.get(key):
                raise UseError(f"{place} lacks {key}", f'{key} = "..."')
        check_figure(entry["figure"], place)
        axes = [entry[key] for key in AXES if entry.get(key)]
        for axis in axes:
            if axis != "variant":
                field_named(axis, place)
        if len(set(axes)) < len(axes):
            raise UseError(f"{place}: an axis is named twice", "name each axis once")
        check_selector(entry.get("case", {}), variants, f"{place}: case")
    return entries
