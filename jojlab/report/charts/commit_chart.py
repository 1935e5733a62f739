"""One commit as a chart: its requests over time and sector, a lane for each owner, flushes across.

Gets rows that are finished (chart_rows.commit_rows), returns Vega-Lite; computes nothing. It is
written out and not built by Altair, which copies what it holds at every step: a report has one of
these for each of its cases, and building them took longer than all the rest of it.
"""

from __future__ import annotations

from typing import Any

from jojlab.report.charts import vega
from jojlab.report.charts.vega import COLOURS, Datasets, Rows

Spec = dict[str, Any]

# The part of a commit's time after which labels stand before their bars, so that none is cut.
_LATE = 0.6


def commit(rows: Rows, flushes: Rows, latency_ms: float) -> Spec:
    """Return the chart.

    `rows` have lane, class, begin_ms, end_ms, sector, kib, text, cause; `flushes` begin_ms,
    end_ms, cause.
    """
    data: Datasets = {}
    lanes = list(dict.fromkeys(row["lane"] for row in rows))
    drawn = []
    for place, lane in enumerate(lanes):
        inside = [row for row in rows if row["lane"] == lane]
        x = _time(latency_ms, place == len(lanes) - 1)
        layers = _flush_layers(data, flushes, x, place == 0) if flushes else []
        layers += _lane_layers(data, inside, x, lane, latency_ms * _LATE)
        drawn.append({"layer": layers, "height": _lane_height(inside), "width": vega.WIDTH})
    return vega.finished({"vconcat": drawn, "spacing": 6}, data)


def _time(latency_ms: float, last: bool) -> Spec:
    """The axis that all lanes share; the last shows its labels."""
    return {
        "axis": {"labelOverlap": True, "labels": last, "tickCount": 8, "ticks": last},
        "field": "begin_ms",
        "scale": {"domain": [0, latency_ms], "nice": False},
        "title": "milliseconds since BEGIN" if last else None,
        "type": "quantitative",
    }


def _lane_layers(data: Datasets, rows: Rows, x: Spec, lane: str, late_ms: float) -> list[Spec]:
    y = {
        "axis": {
            "format": ",d",
            "minExtent": 180,
            "tickCount": 2,
            "titleAlign": "left",
            "titleAnchor": "start",
            "titleAngle": 0,
            "titleBaseline": "top",
            "titleX": -178,
            "titleY": 0,
        },
        "field": "sector",
        "scale": {"nice": False, "padding": 9, "zero": False},
        "title": lane,
        "type": "quantitative",
    }
    source = vega.named(data, rows).to_dict()
    bars = {
        "data": source,
        "mark": {
            "type": "rule",
            "color": COLOURS[rows[0]["class"]],
            "strokeCap": "butt",
            "strokeWidth": 5,
        },
        "encoding": {
            "tooltip": _tooltip("lane", "text", "sector", "kib", "begin_ms", "end_ms", "cause"),
            "x": x,
            "x2": {"field": "end_ms"},
            "y": y,
        },
    }
    return [bars, _labels(source, y, "end_ms", late_ms), _labels(source, y, "begin_ms", late_ms)]


def _labels(source: Spec, y: Spec, side: str, late_ms: float) -> Spec:
    """What stands after a bar (`side` end_ms), or before it where that is late in the commit."""
    late = side == "begin_ms"
    align = {"align": "right", "dx": -4} if late else {"align": "left", "dx": 4}
    return {
        "data": source,
        "transform": [{"filter": f"datum.end_ms {'>' if late else '<='} {late_ms}"}],
        "mark": {"type": "text", "baseline": "middle", "fontSize": 10, **align},
        "encoding": {
            "text": {"field": "text", "type": "nominal"},
            "x": {"field": side, "type": "quantitative"},
            "y": y,
        },
    }


def _flush_layers(data: Datasets, flushes: Rows, x: Spec, label: bool) -> list[Spec]:
    source = vega.named(data, flushes).to_dict()
    bands = {
        "data": source,
        "mark": {"type": "rect", "color": COLOURS["flush"], "opacity": 0.3},
        "encoding": {
            "tooltip": _tooltip("cause", "begin_ms", "end_ms"),
            "x": x,
            "x2": {"field": "end_ms"},
        },
    }
    text = {
        "data": source,
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 1, "fontSize": 10},
        "encoding": {"text": {"value": "flush"}, "x": x, "y": {"value": -2}},
    }
    return [bands, text] if label else [bands]


def _tooltip(*names: str) -> list[Spec]:
    return [
        {"field": name, "format": vega.NUMBER, "type": "quantitative"}
        if name in vega.NUMBERS
        else {"field": name, "type": "nominal"}
        for name in names
    ]


def _lane_height(rows: Rows) -> int:
    return min(150, 26 + 16 * len({row["sector"] for row in rows}))
