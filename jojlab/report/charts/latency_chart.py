"""The latencies of every case as a histogram, one below the other on one logarithmic axis.

Gets rows that are finished (chart_rows.histogram_rows), returns Vega-Lite; computes nothing.
"""

from __future__ import annotations

from typing import Any

from jojlab.report.charts import vega
from jojlab.report.charts.vega import COLOURS, Datasets, Rows

Spec = dict[str, Any]

_WIDTH = 600
_HEIGHT = 38


def histograms(rows: Rows, axis: str) -> Spec:
    """Return the chart.

    `rows` are bins, with case, begin_ms, end_ms, share and count; and percentiles, with case,
    percentile, ms, low and high. `axis` says what the times are of.
    """
    data: Datasets = {}
    names = list(dict.fromkeys(row["percentile"] for row in rows if "percentile" in row))[::-1]
    cases = list(dict.fromkeys(row["case"] for row in rows))
    picture = {
        "layer": [_bins(axis), _hatched_bins(axis), _percentiles(names, axis)],
        "width": _WIDTH,
        "height": _HEIGHT,
    }
    header = {
        "labelAlign": "left", "labelAngle": 0, "labelFontSize": 12, "labelLimit": 260,
        "labelPadding": 6, "title": None,
    }  # fmt: skip
    whole = {
        "data": vega.named(data, rows).to_dict(),
        "facet": {"row": {"field": "case", "header": header, "sort": cases, "type": "nominal"}},
        "spec": picture,
        "spacing": 6,
    }
    return vega.finished(whole, data)


def _time(field: str, axis: str) -> Spec:
    return {
        "axis": {"format": ",~r", "tickCount": 6},
        "field": field,
        "scale": {"nice": False, "type": "log"},
        "title": axis,
        "type": "quantitative",
    }


def _bins(axis: str) -> Spec:
    number = {"format": vega.NUMBER, "type": "quantitative"}
    return {
        "transform": [{"filter": "isValid(datum.share)"}],
        "mark": {"type": "rect", "color": COLOURS["rollback journal"], "opacity": 0.75},
        "encoding": {
            "tooltip": [
                {"field": "case", "type": "nominal"},
                *({"field": name, **number} for name in ("begin_ms", "end_ms", "count")),
                {"field": "share", "format": ".2%", "type": "quantitative"},
            ],
            "x": _time("begin_ms", axis),
            "x2": {"field": "end_ms"},
            # By the root, so that one in a thousand can be seen beside nine hundred.
            "y": {
                "axis": {"format": "%", "grid": False, "values": [0.25, 1]},
                "field": "share",
                "scale": {"domain": [0, 1], "type": "sqrt"},
                "title": None,
                "type": "quantitative",
            },
            "y2": {"datum": 0},
        },
    }


def _hatched_bins(axis: str) -> Spec:
    """The bins of cases that put something at risk, to lie over them."""
    bins = _bins(axis)
    bins["transform"] = [*bins["transform"], {"filter": "datum.risk"}]
    bins["mark"] = {"type": "rect", "color": vega.HATCH, "tooltip": False}
    del bins["encoding"]["tooltip"]
    return bins


def _percentiles(names: list[str], axis: str) -> Spec:
    number = {"format": vega.NUMBER, "type": "quantitative"}
    return {
        "transform": [{"filter": "isValid(datum.percentile)"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "color": {
                "field": "percentile",
                "legend": {
                    "orient": "top",
                    "symbolStrokeWidth": 3,
                    "symbolType": "stroke",
                    "title": None,
                },
                "scale": {"domain": names, "range": list(vega.PERCENTILE_COLOURS)},
                "sort": names,
                "type": "nominal",
            },
            "tooltip": [
                {"field": "case", "type": "nominal"},
                {"field": "percentile", "type": "nominal"},
                *({"field": name, **number} for name in ("ms", "low", "high")),
            ],
            "x": _time("ms", axis),
            "y": {"value": 0},
            "y2": {"value": _HEIGHT},
        },
    }
