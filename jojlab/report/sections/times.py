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
from jojlab.report.sections.overview import at_risk, name_of, with_spread
from jojlab.report.words import text, transaction
from jojlab.report.words.overview import case_title

_FEW = 12  # cases whose histograms stand open one below the other


def throughput(summary: RunSummary, run: str, specs: Specs) -> str:
    """Transactions per second by case."""
    specs["throughput-chart"] = by_case.throughput(
        chart_rows.throughput_rows(summary), chart_rows.names(summary), "transactions per second"
    )
    columns = {
        "throughput_tps": "transactions/s",
        "sync_calls_per_commit": "sync calls/commit",
    }
    note = "The orange line is the range over the seeds." + at_risk(summary)
    if _checkpoints(summary):
        columns = {
            "throughput_tps": "transactions/s without checkpoints",
            "throughput_with_checkpoints_tps": "with checkpoints",
            "checkpoints": "checkpoints",
            "checkpoint_ns_max": "longest checkpoint",
            "sync_calls_per_commit": "sync calls/commit",
        }
        note += (
            " Bars exclude the time of the WAL's checkpoints; black ticks include it, also that of "
            "the checkpoints at the end."
        )
    rows = [
        [name_of(summary, case), *(with_spread(case, n) for n in columns)]
        for case in summary.measured
    ]
    return section(
        "throughput",
        "Throughput",
        chart("throughput-chart", "Bars of transactions per second by case"),
        paragraph(note, "soft"),
        numbers(table([case_title(summary), *columns.values()], rows), len(rows)),
        ask(
            f"joj show {run} --json | "
            "jq -r '.cases[] | [.case_id, .figures.throughput_tps] | @tsv'",
        ),
    )


def _checkpoints(summary: RunSummary) -> bool:
    """Whether any case made a checkpoint."""
    return any(case.figures.median.get("checkpoints") for case in summary.measured)


def latency(summary: RunSummary, run: str, specs: Specs) -> str:
    """Percentiles by case, of the transaction and of its COMMIT alone, where there is one."""
    many = len(summary.measured) > _FEW
    axis = f"milliseconds {transaction.latency(summary.measured)} (log)"
    sql = transaction.has_commit(summary.measured)
    if many:
        specs["latency-chart"] = by_case.latency(
            chart_rows.latency_rows(summary), chart_rows.names(summary), axis
        )
    specs["histogram-chart"] = latency_chart.histograms(chart_rows.histogram_rows(summary), axis)
    histogram = chart("histogram-chart", "Histograms of latency by case on a logarithmic axis")
    names = chart_rows.PERCENTILE_NAMES
    rows = [
        [
            name_of(summary, case),
            *(with_spread(case, f"latency_ns_{name}") for name in names),
            *([text.duration(case.figures.median["commit_latency_ns_p50"])] if sql else []),
        ]
        for case in summary.measured
    ]
    return section(
        "latency",
        "Latency",
        chart("latency-chart", "Latency percentiles by case on a logarithmic axis") if many else "",
        details("Histograms", f"{len(summary.measured)} cases", histogram) if many else histogram,
        paragraph(
            "Blue: the share of all transactions, in bins 7.5 % wide; a quarter of the height is a "
            "sixteenth of them. Lines: exact percentiles by nearest rank, each a measured value. "
            "They are medians over the seeds; the table also has the smallest and largest. "
            "Where lines coincide, only the lowest percentile is visible."
            + at_risk(summary, "Dashed, in the histograms hatched")
            + (
                " Latency includes checkpoints: each is added to the transaction that made it due, "
                "the one at the end to the last transaction."
                if _checkpoints(summary)
                else ""
            ),
            "soft",
        ),
        numbers(
            table(
                [case_title(summary), *names.values(), *(["COMMIT alone, p50"] if sql else [])],
                rows,
            ),
            len(rows),
        ),
        ask(
            f"joj show {run} --json | jq '.cases[] | {{case_id}} + (.figures | "
            'with_entries(select(.key | startswith("latency_ns"))))\''
        ),
    )
