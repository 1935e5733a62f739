"""The sections on time: throughput and latency by case."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.charts import by_case, chart_rows, latency_chart
from jojlab.report.sections.elements import (
    Specs,
    ask,
    chart,
    details,
    numbers,
    paragraph,
    section,
    table,
)
from jojlab.report.sections.overview import with_spread
from jojlab.report.words import text

_FEW = 12  # cases whose histograms stand open one below the other


def throughput(summary: RunSummary, run: str, specs: Specs) -> str:
    """Transactions per second by case."""
    specs["throughput-chart"] = by_case.throughput(chart_rows.throughput_rows(summary))
    names = ("throughput_tps", "throughput_with_checkpoints_tps", "sync_calls_per_commit")
    rows = [[case.label, *(with_spread(case, n) for n in names)] for case in summary.measured]
    return section(
        "throughput",
        "Throughput",
        chart("throughput-chart", "Bars of transactions per second by case"),
        paragraph(
            "The orange line is the range over the seeds. Checkpoints of the WAL are left out of "
            "the bars; the table has the rate with their time added.",
            "soft",
        ),
        numbers(
            table(["case", "transactions/s", "with checkpoints", "sync calls/commit"], rows),
            len(rows),
        ),
        ask(
            f"joj show {run} --json | "
            "jq -r '.cases[] | [.case_id, .figures.throughput_tps] | @tsv'",
        ),
    )


def latency(summary: RunSummary, run: str, specs: Specs) -> str:
    """Percentiles by case, of the transaction and of COMMIT alone."""
    many = len(summary.measured) > _FEW
    if many:
        specs["latency-chart"] = by_case.latency(chart_rows.latency_rows(summary))
    specs["histogram-chart"] = latency_chart.histograms(chart_rows.histogram_rows(summary))
    histogram = chart("histogram-chart", "Histograms of latency by case on a logarithmic axis")
    names = chart_rows.PERCENTILE_NAMES
    rows = [
        [
            case.label,
            *(with_spread(case, f"latency_ns_{name}") for name in names),
            text.figure("_ns_", case.figures.median["commit_latency_ns_p50"]),
        ]
        for case in summary.measured
    ]
    return section(
        "latency",
        "Latency",
        chart("latency-chart", "Latency percentiles by case on a logarithmic axis") if many else "",
        details("Histograms", f"{len(summary.measured)} cases", histogram) if many else histogram,
        paragraph(
            "Blue: the share of all transactions in bins 7.5 % wide; a quarter of the height is a "
            "sixteenth of them. Lines: exact percentiles by nearest rank, each a value that was "
            "measured; the median of the seeds, of which the table has the smallest and largest.",
            "soft",
        ),
        numbers(table(["case", *names.values(), "COMMIT alone, p50"], rows), len(rows)),
        ask(
            f'joj query {run} "SELECT case_id, seed, quantile_disc(return_ns - begin_ns, '
            "[0.5, 0.9, 0.99, 0.999, 1]) AS latency_ns FROM transactions "
            "WHERE phase = 'commit' GROUP BY ALL ORDER BY ALL\""
        ),
    )
