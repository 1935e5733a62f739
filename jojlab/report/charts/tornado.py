"""The picture of what each number of a device moves: a panel for each case, a bar for each value
that was tried, the number that moves most on top.
"""

from __future__ import annotations

import altair as alt

from jojlab.campaign.sensitivity import Sensitivity
from jojlab.report.charts import vega
from jojlab.report.charts.vega import Datasets

MOST_NUMBERS = 14
_PANEL_WIDTH = 150
_SIDES = ("smaller", "greater")
_COLOURS = ("#0072B2", "#E69F00")


def tornado_svg(found: Sensitivity) -> str:
    """Return the picture as SVG, on white: it stands in pages that this project does not style."""
    import vl_convert

    shown = {
        number.key: number.value
        for number in found.by_effect()[:MOST_NUMBERS]
        if found.largest(number.key) > 0
    }
    rows = [
        {
            "case": row.case_id,
            "number": row.key,
            "tried": _SIDES[row.value > shown[row.key]],
            "change": row.change,
        }
        for row in found.effects
        if row.key in shown and row.change is not None
    ]
    data: Datasets = {}
    chart = (
        alt.Chart(vega.named(data, rows))
        .mark_bar(height=9)
        .encode(
            x=alt.X("change:Q", title="change", axis=alt.Axis(format="+%", tickCount=4)),
            y=alt.Y("number:N", title=None, sort=list(shown), axis=alt.Axis(labelLimit=220)),
            color=alt.Color(
                "tried:N",
                scale=alt.Scale(domain=_SIDES, range=_COLOURS),
                legend=vega.legend("the number is"),
            ),
            column=alt.Column("case:N", title=found.figure, sort=list(found.base)),
        )
        .properties(width=_PANEL_WIDTH, height=alt.Step(16))
    )
    spec = vega.configured(chart, data)
    spec["config"] = {**spec["config"], "background": "white"}
    return vl_convert.vegalite_to_svg(spec)
