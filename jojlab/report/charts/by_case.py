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
_MANY = 20  # cases whose axis stands above them
TICK = "#1c2024"


def throughput(rows: Rows, cases: list[str], axis_title: str) -> dict[str, Any]:
    """Bars of `tps` by `case`, with the range over the seeds (`low`, `high`).

    `cases` are all, in their order. A black tick is the rate with checkpoints.
    """
    data: Datasets = {}
    drawn = [row for row in rows if "tps" in row]
    axis = vega.bar_axis(
        value for row in drawn for value in (row["tps"], row["with checkpoints"], row["high"])
    )
    y = _cases(cases)
    base = alt.Chart(vega.named(data, drawn)).encode(y=y)
    title = axis_title + axis.suffix
    scale = alt.Scale(**axis.scale)
    bars = base.encode(
        x=alt.X("tps:Q", title=title, scale=scale, axis=_values(cases)),
        x2=alt.X2Datum(axis.base),
        tooltip=_tooltip("case", "tps", "low", "high", "with checkpoints", "risk", "survives"),
    )
    band = {"height": {"band": 0.62}}
    whole = [bars.mark_bar(color=vega.COLOURS["database"], **band), vega.hatched(bars, **band)]
    ends = base.mark_rule(strokeWidth=2, color="#E69F00").encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q"
    )
    slower = base.transform_filter("datum['with checkpoints'] < datum.tps")
    ticks = slower.mark_tick(thickness=2, size=16, color=TICK).encode(
        x=alt.X("with checkpoints:Q", scale=scale)
    )
    return _finish(alt.layer(*whole, ends, ticks, *_absent(data, rows, y)), len(cases), data)


def latency(rows: Rows, cases: list[str], axis: str) -> dict[str, Any]:
    """Percentiles (`percentile`, `ms`) by `case` on a log axis, joined by a line.

    The line of a case that puts something at risk is dashed.
    """
    drawn = [row for row in rows if "ms" in row]
    names = list(dict.fromkeys(row["percentile"] for row in drawn))
    data: Datasets = {}
    y = _cases(cases)
    # Where points fall together, the lowest percentile is drawn last and the one in sight.
    base = alt.Chart(vega.named(data, drawn[::-1])).encode(y=y)
    x = alt.X(
        "ms:Q",
        title=axis,
        scale=alt.Scale(type="log", nice=True),
        axis=_values(cases),
    )
    lines = [
        base.transform_filter(which)
        .mark_line(strokeWidth=1.5, color="#8C8C8C", **dash)
        .encode(x=x, detail="case:N")
        for which, dash in (("!datum.risk", {}), ("datum.risk", {"strokeDash": [4, 4]}))
    ]
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=x,
        color=alt.Color(
            "percentile:N",
            sort=names,
            scale=alt.Scale(domain=names, range=list(vega.PERCENTILE_COLOURS)),
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
        tooltip=_tooltip("case", "percentile", "ms", "risk", "survives"),
    )
    return _finish(alt.layer(*lines, points, *_absent(data, rows, y)), len(cases), data)


def bill(rows: Rows, cases: list[str], field: str, title: str) -> dict[str, Any]:
    """Stacked bars of `field` (kib or requests) by `case` and `class`; deferred work is paler.

    Where the longest bar would hide others, bars of like length stand together, each group with an
    axis of its own: stacked parts cannot be read on a logarithmic one.
    """
    # A flush has no bytes, nor a place in their legend.
    drawn = [row for row in rows if row.get(field)]
    classes = [name for name in vega.COLOURS if any(row["class"] == name for row in drawn)]
    data: Datasets = {}
    groups = _of_like_length(drawn, cases, field)
    panels = []
    for place, group in enumerate(groups):
        own = [row for row in drawn if row["case"] in group]
        others = [row for row in rows if row["case"] in group and "absent" in row]
        panels.append(
            _bill_panel(data, own, others, group, classes, field, title).properties(
                width=vega.WIDTH,
                height=max(40, _BAR * len(group)),
                **({"title": _panel_title(place)} if len(groups) > 1 else {}),
            )
        )
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=24)
    return vega.configured(chart, data)


def _panel_title(place: int) -> str:
    return "the longest bars" if place == 0 else "shorter bars, on another axis"


def _of_like_length(rows: Rows, cases: list[str], field: str) -> list[list[str]]:
    """Return the cases in groups, within which no bar hides another; those without any come first.

    The groups' cases are in their own order.
    """
    whole = dict.fromkeys(cases, 0.0)
    for row in rows:
        whole[row["case"]] += row[field]
    groups: list[set[str]] = [{case for case in cases if not whole[case]}]
    longest = 0.0
    for case in sorted((case for case in cases if whole[case]), key=lambda case: -whole[case]):
        if longest > whole[case] * vega.MOST_TIMES:
            groups.append(set())
            longest = 0.0
        longest = longest or whole[case]
        groups[-1].add(case)
    return [[case for case in cases if case in group] for group in groups]


def _bill_panel(
    data: Datasets,
    rows: Rows,
    absent: Rows,
    cases: list[str],
    classes: list[str],
    field: str,
    title: str,
) -> Any:
    y = _cases(cases)
    bars = alt.Chart(vega.named(data, rows)).encode(
        y=y,
        x=alt.X(f"{field}:Q", title=title, stack="zero", axis=_values(cases)),
        order=alt.Order("order:Q"),
        detail="class:N",
    )
    colour = alt.Color(
        "class:N",
        scale=alt.Scale(domain=classes, range=[vega.COLOURS[name] for name in classes]),
        legend=vega.legend(""),
    )
    opacity = alt.Opacity(
        "part:O",
        sort=["commit", "deferred"],
        scale=alt.Scale(domain=["commit", "deferred"], range=[1, 0.4]),
        legend=None,
    )
    band = {"height": {"band": 0.62}, "stroke": "white", "strokeWidth": 0.6}
    plain = bars.mark_bar(**band).encode(
        color=colour,
        opacity=opacity,
        tooltip=_tooltip("case", "part", "class", "kib", "requests", "risk", "survives"),
    )
    hatch = vega.hatched(bars, **band).encode(detail=["class:N", "part:O"])
    return alt.layer(plain, hatch, *_absent(data, absent, y))


def shares(rows: Rows) -> dict[str, Any]:
    """Bars of parts of a whole by `case` and `value`, beside each other for each `by`.

    `amount` is what the parts are of, `order` the order in which they stand.
    """
    values = [row["value"] for row in sorted(rows, key=lambda row: row["order"])]
    values = list(dict.fromkeys(values))
    cases = _names(rows)
    data: Datasets = {}
    bars = (
        alt.Chart(vega.named(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(cases),
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
        **vega.KIND_COLOURS,
        "data": vega.COLOURS["database"],
        "no file": vega.COLOURS["flush"],
    }
    rest = [
        "#0072B2", "#56B4E9", "#009E73", "#B8A30F", "#E69F00", "#D55E00", "#CC79A7", "#6A3D9A",
        "#333333", "#999999", "#17455C", "#7A5230",
    ]  # fmt: skip
    free = [colour for colour in rest if colour not in {known.get(value) for value in values}]
    return [known.get(value) or free.pop(0) if free or value in known else "#8C8C8C"
            for value in values]  # fmt: skip


def _values(cases: list[str]) -> alt.Axis:
    """The axis of the values; of many cases above them, where a reader begins."""
    side: Any = "top" if len(cases) > _MANY else "bottom"
    return alt.Axis(tickCount=8, format=",~r", orient=side)


def _absent(data: Datasets, rows: Rows, y: alt.Y) -> list[alt.Chart]:
    """What stands in the place of a bar that is not there: a word, and why."""
    found = [row for row in rows if "absent" in row]
    if not found:
        return []
    words = alt.Chart(vega.named(data, found)).mark_text(
        align="left", dx=4, fontStyle="italic", color=vega.ABSENT_COLOUR
    )
    return [
        words.encode(
            y=y, x=alt.XValue(0), text="absent:N", tooltip=_tooltip("case", "absent", "reason")
        )
    ]


def _names(rows: Rows) -> list[str]:
    """Return the cases in the experiment's order."""
    return list(dict.fromkeys(row["case"] for row in rows))


def _cases(names: list[str]) -> alt.Y:
    """The cases down the side, in their order (Vega would sort them), also those without a bar."""
    return alt.Y(
        "case:N",
        sort=names,
        scale=alt.Scale(domain=names),
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
