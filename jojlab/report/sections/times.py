"""The sections on time: throughput and latency by case."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.charts import by_case, chart_rows, latency_chart
from jojlab.report.sections.overview import at_risk, case_ids, name_of, with_spread
from jojlab.report.sections.template import Section, Specs, render
from jojlab.report.words import text, transaction
from jojlab.report.words.overview import case_title

_FEW = 12  # cases whose histograms stand open one below the other


def throughput(summary: RunSummary, run: str, specs: Specs) -> Section:
    """Transactions per second by case."""
    specs["throughput-chart"] = by_case.throughput(
        chart_rows.throughput_rows(summary), chart_rows.names(summary), "transactions per second"
    )
    columns = {
        "throughput_tps": "transactions/s",
        "sync_calls_per_commit": "sync calls/commit",
    }
    if _checkpoints(summary):
        columns = {
            "throughput_tps": "transactions/s without checkpoints",
            "throughput_with_checkpoints_tps": "with checkpoints",
            "checkpoints": "checkpoints",
            "checkpoint_ns_max": "longest checkpoint",
            "sync_calls_per_commit": "sync calls/commit",
        }
    rows = [
        [name_of(summary, case), *(with_spread(case, n) for n in columns)]
        for case in summary.measured
    ]
    html = render(
        "report/sections/throughput.html",
        at_risk=at_risk(summary),
        has_checkpoints=_checkpoints(summary),
        columns=[case_title(summary), *columns.values()],
        rows=rows,
        ids=case_ids(summary.measured),
        run=run,
    )
    return Section("throughput", html)


def _checkpoints(summary: RunSummary) -> bool:
    """Whether any case made a checkpoint."""
    return any(case.figures.median.get("checkpoints") for case in summary.measured)


def latency(summary: RunSummary, run: str, specs: Specs) -> Section:
    """Percentiles by case, of the transaction and of its COMMIT alone, where there is one."""
    many = len(summary.measured) > _FEW
    axis = f"milliseconds {transaction.latency(summary.measured)} (log)"
    sql = transaction.has_commit(summary.measured)
    if many:
        specs["latency-chart"] = by_case.latency(
            chart_rows.latency_rows(summary), chart_rows.names(summary), axis
        )
    specs["histogram-chart"] = latency_chart.histograms(chart_rows.histogram_rows(summary), axis)
    names = chart_rows.PERCENTILE_NAMES
    rows = [
        [
            name_of(summary, case),
            *(with_spread(case, f"latency_ns_{name}") for name in names),
            *([text.duration(case.figures.median["commit_latency_ns_p50"])] if sql else []),
        ]
        for case in summary.measured
    ]
    html = render(
        "report/sections/latency.html",
        cases=len(summary.measured) if many else 0,
        at_risk=at_risk(summary, "Dashed, in the histograms hatched"),
        has_checkpoints=_checkpoints(summary),
        columns=[case_title(summary), *names.values(), *(["COMMIT alone, p50"] if sql else [])],
        rows=rows,
        ids=case_ids(summary.measured),
        run=run,
    )
    return Section("latency", html)
