"""Charts of one bar or line for each case: throughput, latency, bills and kinds of I/O.

Gets rows that are finished (chart_rows.py, kind_rows.py), returns Vega-Lite; computes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from jojlab.report.charts import vega
from jojlab.report.charts.vega import Datasets, Rows

_BAR = 22  # pixels a case takes


def throughput(rows: Rows) -> dict[str, Any]:
    """Bars of `tps` by `case`, with the range over the seeds (`low`, `high`)."""
    data: Datasets = {}
    base = alt.Chart(vega.named(data, rows)).encode(y=_cases(rows))
    bars = base.mark_bar(color=vega.COLOURS["database"], height={"band": 0.62}).encode(
        x=alt.X("tps:Q", title="transactions per second", axis=alt.Axis(tickCount=8)),
        tooltip=_tooltip("case", "tps", "low", "high", "with checkpoints"),
    )
    ends = base.mark_rule(strokeWidth=2, color="#E69F00").encode(x="low:Q", x2="high:Q")
    return _finish(bars + ends, len(rows), data)


def latency(rows: Rows) -> dict[str, Any]:
    """Percentiles (`percentile`, `ms`) by `case` on a log axis, joined by a line."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    names = list(dict.fromkeys(row["percentile"] for row in rows))
    data: Datasets = {}
    base = alt.Chart(vega.named(data, rows)).encode(y=_cases(rows))
    x = alt.X(
        "ms:Q",
        title="milliseconds from BEGIN to the return of COMMIT (log)",
        scale=alt.Scale(type="log", nice=True),
        axis=alt.Axis(tickCount=6, format="~g"),
    )
    lines = base.mark_line(strokeWidth=1.5, color="#8C8C8C").encode(x=x, detail="case:N")
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=x,
        color=alt.Color(
            "percentile:N",
            sort=names,
            scale=alt.Scale(
                domain=names, range=["#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"]
            ),
            legend=vega.legend(""),
        ),
        shape=alt.Shape(
            "percentile:N",
            sort=names,
            scale=alt.Scale(
                domain=names, range=["circle", "square", "triangle-up", "diamond", "cross"]
            ),
            legend=vega.legend(""),
        ),
        tooltip=_tooltip("case", "percentile", "ms"),
    )
    return _finish(lines + points, len(cases), data)


def bill(rows: Rows, field: str, title: str) -> dict[str, Any]:
    """Stacked bars of `field` (kib or requests) by `case` and `class`; deferred work is paler."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    classes = [name for name in vega.COLOURS if any(row["class"] == name for row in rows)]
    data: Datasets = {}
    chart = (
        alt.Chart(vega.named(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(rows),
            x=alt.X(f"{field}:Q", title=title, stack="zero", axis=alt.Axis(tickCount=8)),
            color=alt.Color(
                "class:N",
                scale=alt.Scale(domain=classes, range=[vega.COLOURS[name] for name in classes]),
                legend=vega.legend(""),
            ),
            opacity=alt.Opacity(
                "part:O",
                sort=["commit", "deferred"],
                scale=alt.Scale(domain=["commit", "deferred"], range=[1, 0.4]),
                legend=None,
            ),
            order=alt.Order("order:Q"),
            tooltip=_tooltip("case", "part", "class", "kib", "requests"),
        )
    )
    return _finish(chart, len(cases), data)


def shares(rows: Rows) -> dict[str, Any]:
    """Bars of parts of a whole by `case` and `value`, beside each other for each `by`.

    `amount` is what the parts are of, `order` the order in which they stand.
    """
    values = [row["value"] for row in sorted(rows, key=lambda row: row["order"])]
    values = list(dict.fromkeys(values))
    cases = list(dict.fromkeys(row["case"] for row in rows))
    data: Datasets = {}
    bars = (
        alt.Chart(vega.named(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(rows),
            x=alt.X("amount:Q", title=None, stack="normalize", axis=alt.Axis(format="%")),
            color=alt.Color(
                "value:N",
                sort=values,
                scale=alt.Scale(domain=values, range=_part_colours(values)),
                legend=vega.legend(""),
            ),
            order=alt.Order("order:Q"),
            tooltip=_tooltip("case", "value", "amount", "by"),
        )
        .properties(width=vega.WIDTH // 2 - 20, height=max(30, _BAR * len(cases)))
    )
    halves = [
        bars.transform_filter(f"datum.by === '{by}'").properties(title=f"by {by}")
        if place == 0
        else bars.transform_filter(f"datum.by === '{by}'")
        .encode(y=alt.Y("case:N", sort=cases, title=None, axis=None))
        .properties(title=f"by {by}")
        for place, by in enumerate(dict.fromkeys(row["by"] for row in rows))
    ]
    return vega.configured(alt.hconcat(*halves, spacing=16), data)


def _part_colours(values: Sequence[str]) -> list[str]:
    """Colours of the bill where the words are its own, and others that can be told apart."""
    known = {
        "db": vega.COLOURS["database"],
        "db-journal": vega.COLOURS["rollback journal"],
        "wal": vega.COLOURS["WAL"],
        "data": vega.COLOURS["database"],
        "fs-journal": vega.COLOURS["filesystem journal"],
        "fs-metadata": vega.COLOURS["filesystem metadata"],
        "unknown": vega.COLOURS["unknown"],
        "no file": vega.COLOURS["flush"],
    }
    rest = [
        "#0072B2", "#56B4E9", "#009E73", "#B8A30F", "#E69F00", "#D55E00", "#CC79A7", "#6A3D9A",
        "#333333", "#999999", "#17455C", "#7A5230",
    ]  # fmt: skip
    free = [colour for colour in rest if colour not in {known.get(value) for value in values}]
    return [known.get(value) or free.pop(0) if free or value in known else "#8C8C8C"
            for value in values]  # fmt: skip


def _cases(rows: Rows) -> alt.Y:
    """The cases down the side, in the experiment's order (Vega would sort them)."""
    return alt.Y(
        "case:N",
        sort=list(dict.fromkeys(row["case"] for row in rows)),
        title=None,
        axis=alt.Axis(labelLimit=260, ticks=False, domain=False),
    )


def _tooltip(*names: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{name}:Q", format=vega.NUMBER)
        if name in vega.NUMBERS
        else alt.Tooltip(f"{name}:N")
        for name in names
    ]


def _finish(chart: Any, cases: int, data: Datasets) -> dict[str, Any]:
    return vega.configured(chart.properties(width=vega.WIDTH, height=max(70, _BAR * cases)), data)
