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
WIDTH = 760
_BAR = 22  # pixels a case takes
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"


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


def commit(rows: Rows, flushes: Rows, latency_ms: float) -> dict[str, Any]:
    """One commit: its requests over time and sector, a lane for each owner, flushes across.

    `rows` have lane, class, begin_ms, end_ms, sector, kib, text, cause; `flushes` begin_ms,
    end_ms, cause.
    """
    data: Datasets = {}
    lanes = list(dict.fromkeys(row["lane"] for row in rows))
    charts = []
    for place, lane in enumerate(lanes):
        inside = [row for row in rows if row["lane"] == lane]
        last = place == len(lanes) - 1
        x = alt.X(
            "begin_ms:Q",
            title="milliseconds since BEGIN" if last else None,
            scale=alt.Scale(domain=[0, latency_ms], nice=False),
            axis=alt.Axis(labels=last, ticks=last, tickCount=8, labelOverlap=True),
        )
        layers = _flush_layers(data, flushes, x, place == 0) if flushes else []
        layers += _lane_layers(data, inside, x, lane)
        charts.append(alt.layer(*layers).properties(width=WIDTH, height=_lane_height(inside)))
    return configured(alt.vconcat(*charts, spacing=6), data)


def _lane_layers(data: Datasets, rows: Rows, x: alt.X, lane: str) -> list[alt.Chart]:
    y = alt.Y(
        "sector:Q",
        title=lane,
        scale=alt.Scale(zero=False, nice=False, padding=9),
        axis=alt.Axis(
            titleAngle=0,
            titleAlign="left",
            titleX=-178,
            titleAnchor="start",
            titleY=0,
            titleBaseline="top",
            tickCount=2,
            format=",d",
            minExtent=180,
        ),
    )
    base = alt.Chart(named(data, rows))
    colour = COLOURS[rows[0]["class"]]
    tooltip = _tooltip("lane", "text", "sector", "kib", "begin_ms", "end_ms", "cause")
    bars = base.mark_rule(strokeWidth=5, color=colour, strokeCap="butt").encode(
        x=x, x2="end_ms:Q", y=y, tooltip=tooltip
    )
    labels = base.mark_text(align="left", dx=4, baseline="middle", fontSize=10).encode(
        x=alt.X("end_ms:Q"), y=y, text="text:N"
    )
    return [bars, labels]


def _flush_layers(data: Datasets, flushes: Rows, x: alt.X, label: bool) -> list[alt.Chart]:
    base = alt.Chart(named(data, flushes))
    bands = base.mark_rect(color=COLOURS["flush"], opacity=0.3).encode(
        x=x, x2="end_ms:Q", tooltip=_tooltip("cause", "begin_ms", "end_ms")
    )
    text = base.mark_text(align="left", baseline="bottom", fontSize=10, dx=1).encode(
        x=x, y=alt.value(-2), text=alt.value("flush")
    )
    return [bands, text] if label else [bands]


def _lane_height(rows: Rows) -> int:
    return min(150, 26 + 16 * len({row["sector"] for row in rows}))


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
    numbers = {
        "tps",
        "low",
        "high",
        "with checkpoints",
        "ms",
        "kib",
        "requests",
        "amount",
        "begin_ms",
        "end_ms",
    }
    return [
        alt.Tooltip(f"{name}:Q", format=",.4~g") if name in numbers else alt.Tooltip(f"{name}:N")
        for name in names
    ]


def _finish(chart: Any, cases: int, data: Datasets) -> dict[str, Any]:
    return configured(chart.properties(width=WIDTH, height=max(70, _BAR * cases)), data)


def configured(chart: Any, data: Datasets) -> dict[str, Any]:
    """Return the finished specification, in the page's type and with its data."""
    spec: dict[str, Any] = (
        chart.configure(font=_FONT, background="transparent", padding=4)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", domain=False)
        .configure_legend(labelFontSize=12, titleFontSize=12)
        # Checked against Vega-Lite's schema in the tests, which takes longer than all the rest.
        .to_dict(validate=VALIDATE)
    )
    return {**spec, "datasets": {name: list(rows) for name, rows in data.items()}}
