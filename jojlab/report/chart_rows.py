"""Lays finished figures, bills and traces out as the rows that charts take; only units change."""

from __future__ import annotations

from typing import Any

from jojlab.analysis.bill_classes import CLASSES, class_of, class_shares
from jojlab.analysis.commit_trace import CommitTrace, TracedRun
from jojlab.analysis.latency import PERCENTILES
from jojlab.analysis.summary import CaseSummary, RunSummary

Row = dict[str, Any]

PERCENTILE_NAMES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
assert list(PERCENTILE_NAMES) == list(PERCENTILES)  # both are shown in one order


def throughput_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case."""
    return [
        {
            "case": case.label,
            "tps": case.figures.median["throughput_tps"],
            "low": case.figures.spread["throughput_tps"][0],
            "high": case.figures.spread["throughput_tps"][1],
            "with checkpoints": case.figures.median["throughput_with_checkpoints_tps"],
        }
        for case in summary.measured
    ]


def latency_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case and percentile."""
    return [
        {
            "case": case.label,
            "percentile": shown,
            "ms": case.figures.median[f"latency_ns_{name}"] / 1e6,
        }
        for case in summary.measured
        for name, shown in PERCENTILE_NAMES.items()
    ]


def bill_rows(summary: RunSummary) -> list[Row]:
    """Return one row per case, part and class of its bill."""
    return [
        {
            "case": case.label,
            "part": share.part,
            "class": share.name,
            "kib": share.bytes / 1024,
            "requests": share.requests,
            "order": (share.part != "commit") * len(CLASSES) + CLASSES.index(share.name),
        }
        for case in summary.measured
        if case.bill
        for share in class_shares(case.bill)
    ]


def commit_rows(trace: CommitTrace) -> tuple[list[Row], list[Row]]:
    """Return the page runs of one commit, lane by lane, and its flushes."""
    runs = [_run_row(run) for run in trace.runs if run.operation != "flush"]
    runs.sort(key=lambda row: (CLASSES.index(row["class"]), row["lane"]))
    flushes = [_times(run) | {"cause": run.cause} for run in trace.runs if run.operation == "flush"]
    return runs, flushes


def lane(case: CaseSummary) -> str:
    """Say which commit of a case is drawn."""
    assert case.trace
    return f"transaction {case.trace.transaction_id} of seed {case.trace.seed}"


def _run_row(run: TracedRun) -> Row:
    name = class_of(run.block_type, run.file_kind)
    file = run.file.rsplit("/", 1)[-1]
    marks = [run.block_subtype] * bool(run.block_subtype)
    marks += ["read"] * (run.operation == "read")
    marks += ["preflush"] * run.preflush + ["FUA"] * run.fua
    return _times(run) | {
        "lane": file if run.block_type == "data" and file else name,
        "class": name,
        "sector": run.sector,
        "kib": run.length_bytes / 1024,
        "subtype": run.block_subtype or run.block_type,
        "text": " ".join([f"{run.length_bytes / 1024:g} KiB", *marks]),
        "cause": run.cause,
    }


def _times(run: TracedRun) -> Row:
    # A request whose completion was not seen is drawn as a point at its issue.
    end_ns = run.issue_ns if run.complete_ns is None else run.complete_ns
    return {"begin_ms": run.issue_ns / 1e6, "end_ms": end_ns / 1e6}
