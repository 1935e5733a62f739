"""The common part of all charts: its colours, its type, its data by name, and how it becomes
Vega-Lite.

Colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any form of
colour blindness tell apart, on white and on black. Text and lines take the page's own colours by
CSS, so that one chart serves light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jojlab.foundation.lazy import alt

Rows = Sequence[dict[str, Any]]
# The rows of a chart by name. They join the specification last: Altair copies what it holds at
# every step, and rows are most of it.
Datasets = dict[str, Rows]

COLOURS = {
    "database": "#0072B2",
    "rollback journal": "#56B4E9",
    "WAL": "#009E73",
    "other data": "#B8A30F",
    "others' files": "#7A6A4F",
    "filesystem journal": "#D55E00",
    "filesystem metadata": "#E69F00",
    "unknown": "#CC79A7",
    "flush": "#8C8C8C",
}
# The same by the words of the tables: kinds of files, and types of blocks that are no data.
KIND_COLOURS = {
    "db": COLOURS["database"],
    "db-journal": COLOURS["rollback journal"],
    "wal": COLOURS["WAL"],
    "fs-journal": COLOURS["filesystem journal"],
    "fs-metadata": COLOURS["filesystem metadata"],
    "unknown": COLOURS["unknown"],
}
# From the least percentile to the greatest.
PERCENTILE_COLOURS = ("#1c7c54", "#E69F00", "#D55E00", "#CC79A7", "#8C8C8C")
VALIDATE = False
NUMBER = ",.4~g"  # how tooltips show the numbers among the columns
NUMBERS = {
    "tps", "low", "high", "with checkpoints", "ms", "kib", "requests", "amount", "begin_ms",
    "end_ms", "count",
}  # fmt: skip
WIDTH = 760
# Lies over the colour of a bar whose case puts something at risk: a pattern in report/page.html.
HATCH = "url(#hatch)"
ABSENT_COLOUR = "#8C8C8C"
# On an axis from zero a bar this many times shorter than the longest can no longer be read.
MOST_TIMES = 20
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


def named_data(data: Datasets, rows: Rows) -> alt.NamedData:
    """Put `rows` among the chart's data, once, and return their name."""
    name = next((name for name, known in data.items() if known is rows), f"rows{len(data)}")
    data[name] = rows
    return alt.NamedData(name=name)


def quantity(field: str, title: str | None = None, **rest: Any) -> dict[str, Any]:
    """Return what is drawn by the numbers of a column."""
    return {"field": field, "type": "quantitative", "title": title, **rest}


def nominal(field: str, title: str | None = None, **rest: Any) -> dict[str, Any]:
    """Return what is drawn by the words of a column."""
    return {"field": field, "type": "nominal", "title": title, **rest}


def tooltip(*names: str) -> list[dict[str, Any]]:
    """Return the columns of a tooltip, each under its name."""
    return [
        quantity(name, name, format=NUMBER) if name in NUMBERS else nominal(name, name)
        for name in names
    ]


class Axis(NamedTuple):
    """The scale of an axis, where its bars begin, and what its title ends with."""

    scale: dict[str, Any]
    base: float
    suffix: str


def bar_axis(values: Iterable[float]) -> Axis:
    """Return an axis from zero; a logarithmic one, from below the least, where that hides some."""
    seen = [value for value in values if value > 0] or [1.0]
    low, high = min(seen), max(seen)
    if high <= low * MOST_TIMES:
        return Axis({"domain": [0, high], "nice": True}, 0, "")
    base = 10.0 ** math.floor(math.log10(low * 0.8))
    return Axis({"type": "log", "domain": [base, high], "nice": False}, base, " (log)")


def hatch(bars: alt.Chart, **mark: Any) -> alt.Chart:
    """Return the bars whose case has a `risk`, as hatching to lie over them; `mark` is theirs."""
    return bars.transform_filter("datum.risk").mark_bar(color=HATCH, tooltip=False, **mark)


def legend(title: str) -> alt.Legend:
    """Return a legend above the chart, in one line where it fits."""
    return alt.Legend(title=title or None, orient="top", columns=8, labelLimit=220, symbolSize=90)


def configure(chart: Any, data: Datasets) -> dict[str, Any]:
    """Return the finished specification of an Altair chart, with its data."""
    return finish(chart.to_dict(validate=False), data)


def finish(spec: dict[str, Any], data: Datasets) -> dict[str, Any]:
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
