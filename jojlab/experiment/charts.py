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

from jojlab.experiment.published import check_figure, check_selector
from jojlab.foundation.document import checked
from jojlab.foundation.errors import UseError
from jojlab.model.fields import field_named
from jojlab.trace.shapes import Chart


def check_charts(entries: Sequence[Mapping[str, Any]], variants: Sequence[str], where: str) -> None:
    """Check the entries; UseError naming file, entry and key."""
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[chart]] number {number}"
        chart = checked(entry, Chart, place, "docs/experiments.md has the form")
        check_figure(chart.figure, place)
        axes = [axis for axis in (chart.groups, chart.bars, chart.panels) if axis]
        for axis in axes:
            if axis != "variant":
                field_named(axis, place)
        if len(set(axes)) < len(axes):
            raise UseError(f"{place}: an axis is named twice", "name each axis once")
        check_selector(chart.case, variants, f"{place}: case")
