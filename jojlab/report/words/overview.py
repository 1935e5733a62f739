"""Which figures stand in the overview of a run, in what order and under which titles?"""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary

# The figures of the overview: column title, figure.
OVERVIEW = (
    ("transactions/s", "throughput_tps"),
    ("I/O time", "io_time_ns"),
    ("with checkpoints", "throughput_with_checkpoints_tps"),
    ("latency p50", "latency_ns_p50"),
    ("p99", "latency_ns_p99"),
    ("max", "latency_ns_max"),
    ("paying for a checkpoint p50", "paying_latency_ns_p50"),
    ("p99", "paying_latency_ns_p99"),
    ("checkpoints, shared out", "checkpoint_ns_per_commit"),
    ("requests", "requests_per_commit"),
    ("flushes", "flushes_per_commit"),
    ("bytes", "bytes_per_commit"),
    ("fs journal", "fs_journal_bytes_per_commit"),
    ("deferred", "deferred_bytes_per_commit"),
)
# Those that say nothing where no checkpoint was made.
_OF_CHECKPOINTS = {
    "throughput_with_checkpoints_tps",
    "paying_latency_ns_p50",
    "paying_latency_ns_p99",
    "checkpoint_ns_per_commit",
}


def case_title(summary: RunSummary) -> str:
    """Return the head of the column of cases: the axes that their names are made of."""
    titles = {" · ".join(part.named_by) for part in summary.parts}
    return (titles.pop() if len(titles) == 1 else "") or "case"


def overview_columns(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the columns of the overview that some case has: without a tracer there are fewer.

    Where a checkpoint was made, the rates without and with its time are both there, and say which
    they are; so is what those waited who paid for one, and what it costs each if shared out evenly.
    """
    if any(case.figures.median.get("checkpoints") for case in summary.measured):
        titles = {"throughput_tps": "transactions/s without checkpoints"}
        titles["throughput_with_checkpoints_tps"] = "with checkpoints"
        left_out = {"latency_ns_max"}  # as long as the longest that pays
    else:
        titles = {}
        left_out = _OF_CHECKPOINTS
    return [
        (titles.get(figure, title), figure)
        for title, figure in OVERVIEW
        if figure not in left_out
        if not summary.measured or any(figure in c.figures.median for c in summary.measured)
    ]


def paying_note(summary: RunSummary) -> str:
    """Say how many commits the percentiles of those that paid for a checkpoint are of; empty where
    none did.
    """
    counts = [
        int(case.figures.median["checkpoints"])
        for case in summary.measured
        if case.figures.median.get("paying_latency_ns_p50") is not None
    ]
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    many = f"{least}" if least == most else f"{least} to {most}"
    return f"paying for a checkpoint: of {many} checkpoints a capture; p99 of few is the longest"
