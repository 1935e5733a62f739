"""Charts as Vega-Lite: gets rows that are finished, returns specifications; computes nothing.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any form of
colour blindness tell apart, on white and on black. Text and lines take the page's own colours by
CSS, so that one chart serves light, dark and print.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

Rows = Sequence[dict[str, Any]]
# The rows of a chart by name. They join the specification last: Altair copies what it holds at
# every step, and rows are most of it.
Datasets = dict[str, Rows]

COLOURS = {
    "database": "#0072B2",
    "rollback journal": "#56B4E9",
    "WAL": "#009E73",
    "other data": "#B8A30F",
    "filesystem journal": "#D55E00",
    "filesystem metadata": "#E69F00",
    "unknown": "#CC79A7",
    "flush": "#8C8C8C",
}
VALIDATE = False
NUMBER = ",.4~g"  # how tooltips show the numbers among the columns
NUMBERS = {
    "tps", "low", "high", "with checkpoints", "ms", "kib", "requests", "amount", "begin_ms",
    "end_ms",
}  # fmt: skip
WIDTH = 760
_BAR = 22  # pixels a case takes
CONFIG: dict[str, Any] = {
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
    "axis": {
        "domain": False, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"
    },
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif",
    "legend": {"labelFontSize": 12, "titleFontSize": 12},
    "padding": 4,
}  # fmt: skip


def throughput(rows: Rows) -> dict[str, Any]:
    """Bars of `tps` by `case`, with the range over the seeds (`low`, `high`)."""
    data: Datasets = {}
    base = alt.Chart(named(data, rows)).encode(y=_cases(rows))
    bars = base.mark_bar(color=COLOURS["database"], height={"band": 0.62}).encode(
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
    base = alt.Chart(named(data, rows)).encode(y=_cases(rows))
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
            legend=legend(""),
        ),
        shape=alt.Shape(
            "percentile:N",
            sort=names,
            scale=alt.Scale(
                domain=names, range=["circle", "square", "triangle-up", "diamond", "cross"]
            ),
            legend=legend(""),
        ),
        tooltip=_tooltip("case", "percentile", "ms"),
    )
    return _finish(lines + points, len(cases), data)


def bill(rows: Rows, field: str, title: str) -> dict[str, Any]:
    """Stacked bars of `field` (kib or requests) by `case` and `class`; deferred work is paler."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    classes = [name for name in COLOURS if any(row["class"] == name for row in rows)]
    data: Datasets = {}
    chart = (
        alt.Chart(named(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(rows),
            x=alt.X(f"{field}:Q", title=title, stack="zero", axis=alt.Axis(tickCount=8)),
            color=alt.Color(
                "class:N",
                scale=alt.Scale(domain=classes, range=[COLOURS[name] for name in classes]),
                legend=legend(""),
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
        alt.Chart(named(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(rows),
            x=alt.X("amount:Q", title=None, stack="normalize", axis=alt.Axis(format="%")),
            color=alt.Color(
                "value:N",
                sort=values,
                scale=alt.Scale(domain=values, range=_part_colours(values)),
                legend=legend(""),
            ),
            order=alt.Order("order:Q"),
            tooltip=_tooltip("case", "value", "amount", "by"),
        )
        .properties(width=WIDTH // 2 - 20, height=max(30, _BAR * len(cases)))
    )
    halves = [
        bars.transform_filter(f"datum.by === '{by}'").properties(title=f"by {by}")
        if place == 0
        else bars.transform_filter(f"datum.by === '{by}'")
        .encode(y=alt.Y("case:N", sort=cases, title=None, axis=None))
        .properties(title=f"by {by}")
        for place, by in enumerate(dict.fromkeys(row["by"] for row in rows))
    ]
    return configured(alt.hconcat(*halves, spacing=16), data)


def _part_colours(values: Sequence[str]) -> list[str]:
    """Colours of the bill where the words are its own, and others that can be told apart."""
    known = {
        "db": COLOURS["database"],
        "db-journal": COLOURS["rollback journal"],
        "wal": COLOURS["WAL"],
        "data": COLOURS["database"],
        "fs-journal": COLOURS["filesystem journal"],
        "fs-metadata": COLOURS["filesystem metadata"],
        "unknown": COLOURS["unknown"],
        "no file": COLOURS["flush"],
    }
    rest = [
        "#0072B2", "#56B4E9", "#009E73", "#B8A30F", "#E69F00", "#D55E00", "#CC79A7", "#6A3D9A",
        "#333333", "#999999", "#17455C", "#7A5230",
    ]  # fmt: skip
    free = [colour for colour in rest if colour not in {known.get(value) for value in values}]
    return [known.get(value) or free.pop(0) if free or value in known else "#8C8C8C"
            for value in values]  # fmt: skip


def named(data: Datasets, rows: Rows) -> alt.NamedData:
    """Put `rows` among the chart's data, once, and return their name."""
    name = next((name for name, known in data.items() if known is rows), f"rows{len(data)}")
    data[name] = rows
    return alt.NamedData(name=name)


def _cases(rows: Rows) -> alt.Y:
    """The cases down the side, in the experiment's order (Vega would sort them)."""
    return alt.Y(
        "case:N",
        sort=list(dict.fromkeys(row["case"] for row in rows)),
        title=None,
        axis=alt.Axis(labelLimit=260, ticks=False, domain=False),
    )


def legend(title: str) -> alt.Legend:
    """A legend above the chart, in one line where it fits."""
    return alt.Legend(title=title or None, orient="top", columns=8, labelLimit=220, symbolSize=90)


def _tooltip(*names: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip(f"{name}:Q", format=NUMBER) if name in NUMBERS else alt.Tooltip(f"{name}:N")
        for name in names
    ]


def _finish(chart: Any, cases: int, data: Datasets) -> dict[str, Any]:
    return configured(chart.properties(width=WIDTH, height=max(70, _BAR * cases)), data)


def configured(chart: Any, data: Datasets) -> dict[str, Any]:
    """Return the finished specification of an Altair chart, with its data."""
    return finished(chart.to_dict(validate=False), data)


def finished(spec: dict[str, Any], data: Datasets) -> dict[str, Any]:
    """Return `spec` in the page's type and with its data."""
    whole = {
        "config": CONFIG,
        **{name: value for name, value in spec.items() if name not in ("config", "$schema")},
        "$schema": alt.SCHEMA_URL,
        "datasets": {name: list(rows) for name, rows in data.items()},
    }
    if VALIDATE:  # in the tests: it takes longer than all the rest
        alt.Chart.from_dict(whole, validate=True)
    return whole
