"""Grouped bars as papers print them: groups along an axis, bars of a group, panels beside.

Gets rows that are finished (grouped_rows.py), returns Vega-Lite; computes nothing.
"""

from __future__ import annotations

from typing import Any

import altair as alt

from jojlab.analysis.figures.case_figures import FIGURES
from jojlab.report.charts import vega
from jojlab.report.charts.vega import Datasets, Rows

# Okabe and Ito's, in an order in which neighbours differ in lightness too.
BARS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A30F", "#8C8C8C")
STATED = "#1c2024"
_HEIGHT = 230
_LETTER = 7  # pixels that a letter of a name takes, about


def grouped(rows: Rows, figure: str) -> dict[str, Any]:
    """Bars of `value` by `group` and `bar`, a panel for each `panel`; a diamond is `stated`."""
    data: Datasets = {}
    panels = list(dict.fromkeys(row["panel"] for row in rows))
    width = (vega.WIDTH - 60 * (len(panels) - 1)) // len(panels)
    highest = max([row["high"] for row in rows] + [row["stated"] or 0 for row in rows])
    bars = list(dict.fromkeys(row["bar"] for row in rows))
    drawn = []
    for panel in panels:
        own = [row for row in rows if row["panel"] == panel]
        picture = _panel(data, own, bars, highest, FIGURES[figure], width)
        picture = picture.properties(width=width, height=_HEIGHT)
        # Altair takes no word for "no title" here.
        drawn.append(picture.properties(title=panel) if panel else picture)
    return vega.configured(alt.hconcat(*drawn, spacing=30), data)


def _names(groups: list[str], width: int) -> alt.Axis:
    """The groups' names: level, or aslant where they would run into each other."""
    longest = max(len(str(group)) for group in groups)
    if longest * _LETTER * len(groups) > width:
        return alt.Axis(labelAngle=-30, labelAlign="right", labelLimit=150)
    return alt.Axis(labelAngle=0, labelLimit=150)


def _panel(
    data: Datasets, rows: Rows, bars: list[str], highest: float, title: str, width: int
) -> alt.LayerChart:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    base = alt.Chart(vega.named(data, rows)).encode(
        x=alt.X("group:N", sort=groups, title=None, axis=_names(groups, width)),
        xOffset=alt.XOffset("bar:N", sort=bars),
        tooltip=[
            alt.Tooltip("case:N"),
            *(alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("value", "low", "high")),
        ],
    )
    scale = alt.Scale(domain=[0, highest], nice=True)
    height = base.mark_bar().encode(
        y=alt.Y("value:Q", title=title, scale=scale),
        color=alt.Color(
            "bar:N",
            sort=bars,
            scale=alt.Scale(domain=bars, range=list(BARS[: len(bars)])),
            legend=vega.legend("") if len(bars) > 1 else None,
        ),
    )
    ends = base.mark_rule(strokeWidth=1.5, color="#8C8C8C").encode(y="low:Q", y2="high:Q")
    stated = base.transform_filter("datum.stated != null").mark_point(
        shape="diamond", size=90, filled=True, color=STATED, stroke="white", strokeWidth=1.5
    )
    return alt.layer(height, ends, stated.encode(y=alt.Y("stated:Q", scale=scale)))
