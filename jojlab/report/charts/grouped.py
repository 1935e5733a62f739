"""Grouped bars as papers print them: groups along an axis, bars of a group, panels beside.

Gets rows that are finished (grouped_rows.py), returns Vega-Lite; computes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt

from jojlab.analysis.figures.figure import FIGURES
from jojlab.report.charts import vega
from jojlab.report.charts.vega import Datasets, Rows
from jojlab.report.words import text

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


def grouped(rows: Rows, figure: str, axes: Axes = NO_AXES) -> dict[str, Any]:
    """Bars of `value` by `group` and `bar`, a panel for each `panel`; a diamond is `stated`.

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
    return vega.configured(alt.hconcat(*drawn, spacing=30), data)


def _names(groups: list[str], width: int) -> alt.Axis:
    """The groups' names: level, or aslant where they would run into each other."""
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
    place = alt.Chart(vega.named(data, rows)).encode(
        x=alt.X("group:N", sort=groups, title=axes.groups or None, axis=_names(groups, width)),
        xOffset=alt.XOffset("bar:N", sort=bars),
    )
    base = place.transform_filter("isValid(datum.value)").encode(
        tooltip=[
            alt.Tooltip("case:N"),
            *(alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("value", "low", "high")),
            alt.Tooltip("risk:N", title="at risk"),
            alt.Tooltip("survives:N"),
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
    hatch = vega.hatched(bar).encode(detail="bar:N")
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
