"""The sections on time: throughput and latency by case, with histograms."""

from __future__ import annotations

from typing import Any

from jojlab.analysis.run.summary import RunSummary
from jojlab.report import case_charts
from jojlab.report.overview import case_title, name_of, risk_note, spread_cell
from jojlab.report.shared import text, vega
from jojlab.report.shared.template import Section, Specs, case_ids
from jojlab.report.shared.vega import COLOURS, Datasets, Rows

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
        "data": vega.named_data(data, rows).to_dict(),
        "facet": {"row": vega.nominal("case", header=header, sort=cases)},
        "spec": picture,
        "spacing": 6,
    }
    return vega.finish(whole, data)


def _time_axis(field: str, axis: str) -> Spec:
    ticks = {"format": ",~r", "tickCount": 6}
    return vega.quantity(field, axis, axis=ticks, scale={"nice": False, "type": "log"})


def _bins(axis: str) -> Spec:
    ticks = {"format": "%", "grid": False, "values": [0.25, 1]}
    return {
        "transform": [{"filter": "isValid(datum.share)"}],
        "mark": {"type": "rect", "color": COLOURS["rollback journal"], "opacity": 0.75},
        "encoding": {
            "tooltip": [
                *vega.tooltip("case", "begin_ms", "end_ms", "count"),
                vega.quantity("share", "share", format=".2%"),
            ],
            "x": _time_axis("begin_ms", axis),
            "x2": {"field": "end_ms"},
            # By the root, so that one in a thousand can be seen beside nine hundred.
            "y": vega.quantity("share", axis=ticks, scale={"domain": [0, 1], "type": "sqrt"}),
            "y2": {"datum": 0},
        },
    }


def _hatched_bins(axis: str) -> Spec:
    """Return the bins of cases that put something at risk, to lie over them."""
    bins = _bins(axis)
    bins["transform"] = [*bins["transform"], {"filter": "datum.risk"}]
    bins["mark"] = {"type": "rect", "color": vega.HATCH, "tooltip": False}
    del bins["encoding"]["tooltip"]
    return bins


def _percentiles(names: list[str], axis: str) -> Spec:
    legend = {"orient": "top", "symbolStrokeWidth": 3, "symbolType": "stroke", "title": None}
    colours = {"domain": names, "range": list(vega.PERCENTILE_COLOURS)}
    return {
        "transform": [{"filter": "isValid(datum.percentile)"}],
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "color": vega.nominal("percentile", legend=legend, scale=colours, sort=names),
            "tooltip": vega.tooltip("case", "percentile", "ms", "low", "high"),
            "x": _time_axis("ms", axis),
            "y": {"value": 0},
            "y2": {"value": _HEIGHT},
        },
    }


_FEW = 12  # cases whose histograms stand open one below the other


def throughput_section(summary: RunSummary, run: str, specs: Specs) -> Section:
    """Return transactions per second by case."""
    specs["throughput-chart"] = case_charts.throughput_chart(
        case_charts.throughput_rows(summary),
        case_charts.chart_labels(summary),
        "transactions per second",
    )
    columns = {"throughput_tps": "transactions/s", "sync_calls_per_commit": "sync calls/commit"}
    if _has_checkpoints(summary):
        columns = {
            "throughput_tps": "transactions/s without checkpoints",
            "throughput_with_checkpoints_tps": "with checkpoints",
            "checkpoints": "checkpoints",
            "checkpoint_ns_max": "longest checkpoint",
            "sync_calls_per_commit": "sync calls/commit",
        }
    rows = [
        [name_of(summary, case), *(spread_cell(case, n) for n in columns)]
        for case in summary.measured_cases
    ]
    return Section.render(
        "throughput",
        "throughput",
        at_risk=risk_note(summary),
        has_checkpoints=_has_checkpoints(summary),
        columns=[case_title(summary), *columns.values()],
        rows=rows,
        ids=case_ids(summary.measured_cases),
        run=run,
    )


def _has_checkpoints(summary: RunSummary) -> bool:
    """Return whether any case made a checkpoint."""
    return any(case.figures.median.get("checkpoints") for case in summary.measured_cases)


def latency_section(summary: RunSummary, run: str, specs: Specs) -> Section:
    """Return percentiles by case, of the transaction and, where there is one, its COMMIT."""
    many = len(summary.measured_cases) > _FEW
    axis = f"milliseconds {text.latency_interval(summary.measured_cases)} (log)"
    sql = text.has_commit(summary.measured_cases)
    if many:
        specs["latency-chart"] = case_charts.latency_chart(
            case_charts.latency_rows(summary), case_charts.chart_labels(summary), axis
        )
    specs["histogram-chart"] = histograms(case_charts.histogram_rows(summary), axis)
    names = case_charts.PERCENTILE_NAMES
    rows = [
        [
            name_of(summary, case),
            *(spread_cell(case, f"latency_ns_{name}") for name in names),
            *([text.duration(case.figures.median["commit_latency_ns_p50"])] if sql else []),
        ]
        for case in summary.measured_cases
    ]
    return Section.render(
        "latency",
        "latency",
        cases=len(summary.measured_cases) if many else 0,
        at_risk=risk_note(summary, "Dashed, in the histograms hatched"),
        has_checkpoints=_has_checkpoints(summary),
        columns=[case_title(summary), *names.values(), *(["COMMIT alone, p50"] if sql else [])],
        rows=rows,
        ids=case_ids(summary.measured_cases),
        run=run,
    )
