"""Which figures stand in the overview of a run, in what order and under which titles?"""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary

# The figures of the overview: column title, figure.
OVERVIEW = (
    ("transactions/s", "throughput_tps"),
    ("latency p50", "latency_ns_p50"),
    ("p99", "latency_ns_p99"),
    ("requests", "requests_per_commit"),
    ("flushes", "flushes_per_commit"),
    ("bytes", "bytes_per_commit"),
    ("fs journal", "fs_journal_bytes_per_commit"),
    ("deferred", "deferred_bytes_per_commit"),
)


def overview_columns(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the columns of the overview that some case has: without a tracer there are fewer."""
    return [
        (title, figure)
        for title, figure in OVERVIEW
        if not summary.measured or any(figure in c.figures.median for c in summary.measured)
    ]
