"""The section of one typical commit of every case, request by request."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.charts import chart_rows, commit_chart
from jojlab.report.sections.commit_table import commit_table
from jojlab.report.sections.elements import (
    Specs,
    ask,
    banner,
    chart,
    details,
    paragraph,
    section,
)
from jojlab.report.words import text


def commits(summary: RunSummary, run: str, specs: Specs) -> str:
    """The requests of one typical commit of every case."""
    parts, untold = [], []
    for place, case in enumerate(summary.measured):
        if not case.trace or not case.trace.runs:
            if case.figures.median.get("requests_per_commit"):
                untold.append(case.label)
            continue
        name = f"commit-chart-{place}"
        runs, flushes = chart_rows.commit_rows(case.trace)
        specs[name] = commit_chart.commit(runs, flushes, case.trace.latency_ns / 1e6)
        which = (
            f"case_id = '{case.case_id}' AND seed = {case.trace.seed} "
            f"AND transaction_id = {case.trace.transaction_id}"
        )
        parts.append(
            details(
                case.label,
                f"{chart_rows.which_commit(case)}, {text.duration(case.trace.latency_ns)}",
                chart(name, f"Requests of one commit of {case.label} over time and sector"),
                commit_table(case.trace),
                ask(
                    f'joj query {run} "SELECT * FROM requests JOIN page_runs USING '
                    f'(case_id, seed, request_id) WHERE {which} ORDER BY issue_ns"'
                ),
                is_open=place < 2,
            )
        )
    return section(
        "commit",
        "One commit, request by request",
        paragraph(
            "A typical commit of each case: the one whose requests and bytes, and then latency, "
            "are nearest to the medians. Each bar is a request, from issue to completion, at its "
            "first sector. Grey: the device flushes its cache.",
            "soft",
        ),
        banner("warn", "Cases where no request could be assigned to a transaction", untold),
        *parts,
    )
