"""The section of one typical commit of every case, request by request."""

from __future__ import annotations

from jojlab.analysis.commit.story import story
from jojlab.analysis.run.summary import RunSummary
from jojlab.report.charts import chart_rows, commit_chart
from jojlab.report.sections.commit_table import COLUMNS, commit_rows
from jojlab.report.sections.template import Section, Specs, render
from jojlab.report.words import text
from jojlab.report.words.story import told, without_requests


def commits(summary: RunSummary, run: str, specs: Specs) -> Section:
    """The requests of one typical commit of every case, or of its checkpoint."""
    found, untold = [], []
    for place, case in enumerate(summary.measured):
        if not case.trace or not case.trace.runs:
            if case.figures.median.get("requests_per_commit"):
                untold.append(f"{case.label}: {without_requests(case.trace)}")
            continue
        name = f"commit-chart-{place}"
        runs, flushes = chart_rows.commit_rows(case.trace)
        specs[name] = commit_chart.commit(runs, flushes, case.trace.latency_ns / 1e6)
        which = (
            f"case_id = '{case.case_id}' AND seed = {case.trace.seed} "
            f"AND transaction_id = {case.trace.transaction_id}"
        )
        found.append(
            {
                "case": case.case_id,
                "label": case.label,
                "soft": f"{chart_rows.which_commit(case)}, {text.duration(case.trace.latency_ns)}",
                "chart": name,
                "rows": commit_rows(case.trace),
                "story": tuple(
                    told(story(case.trace), str(case.case.get("filesystem", "")), case.trace.phase)
                ),
                "command": f'joj query {run} "SELECT * FROM requests JOIN page_runs USING '
                f'(case_id, seed, request_id) WHERE {which} ORDER BY issue_ns"',
                "is_open": place < 2,
            }
        )
    html = render("report/sections/commits.html", commits=found, untold=untold, columns=COLUMNS)
    return Section("commit", html)
