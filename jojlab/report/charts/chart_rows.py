"""Lays finished figures, bills and traces out as the rows that charts take; only units change."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jojlab.analysis.commit.classes import CLASSES, class_of, class_shares
from jojlab.analysis.commit.trace import CommitTrace, TracedRun
from jojlab.analysis.figures.figure import PERCENTILES
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.words import survival

Row = dict[str, Any]

PERCENTILE_NAMES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
assert list(PERCENTILE_NAMES) == list(PERCENTILES)  # both are shown in one order


def throughput_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case, and one that says why there is none for every other."""
    return absent_rows(summary) + [
        {
            "case": named(summary, case),
            "risk": survival.risk(case),
            "survives": survival.short(case),
            "tps": case.figures.median["throughput_tps"],
            "low": case.figures.spread["throughput_tps"][0],
            "high": case.figures.spread["throughput_tps"][1],
            "with checkpoints": case.figures.median["throughput_with_checkpoints_tps"],
        }
        for case in summary.measured
    ]


def absent_rows(summary: RunSummary) -> list[Row]:
    """Return one row per case without figures: what became of it, and why."""
    return [
        {"case": named(summary, case), "absent": case.status, "reason": case.reason}
        for case in summary.cases
        if not case.figures.seeds
    ]


def names(summary: RunSummary) -> list[str]:
    """Return the names of all cases in the experiment's order."""
    return [named(summary, case) for case in summary.cases]


def named(summary: RunSummary, case: CaseSummary) -> str:
    """Return the name of a case, and with it how many seeds it has where it lacks some."""
    partial = summary.partial(case)
    return f"{case.label} ({partial})" if partial else case.label


def latency_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case and percentile, and those of absent_rows."""
    return absent_rows(summary) + [
        {
            "case": named(summary, case),
            "risk": survival.risk(case),
            "survives": survival.short(case),
            "percentile": shown,
            "ms": case.figures.median[f"latency_ns_{name}"] / 1e6,
        }
        for case in summary.measured
        for name, shown in PERCENTILE_NAMES.items()
    ]


def histogram_rows(summary: RunSummary) -> list[Row]:
    """Return the bins of every case that are not empty, and after them its percentiles.

    The greatest comes first, so that what is drawn last, over the others, is the median.
    """
    rows: list[Row] = []
    for case in summary.measured:
        whole = sum(found.count for found in case.latencies)
        rows += [
            {
                "case": named(summary, case),
                "risk": survival.risk(case),
                "begin_ms": found.begin_ns / 1e6,
                "end_ms": found.end_ns / 1e6,
                "share": found.count / whole,
                "count": found.count,
            }
            for found in case.latencies
            if found.count
        ]
        for name, shown in reversed(PERCENTILE_NAMES.items()):
            low, high = case.figures.spread[f"latency_ns_{name}"]
            median = case.figures.median[f"latency_ns_{name}"]
            ms = {"ms": median / 1e6, "low": low / 1e6, "high": high / 1e6}
            rows.append({"case": named(summary, case), "percentile": shown, **ms})
    return rows


def bill_rows(summary: RunSummary) -> list[Row]:
    """Return one row per case, part and class of its bill, and those of absent_rows."""
    return absent_rows(summary) + [
        {
            "case": named(summary, case),
            "risk": survival.risk(case),
            "survives": survival.short(case),
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
    """Return the stretches of one commit, lane by lane, and its flushes.

    A stretch is what one request has in one lane: its page runs there, drawn as one bar.
    """
    stretches: dict[tuple[int, str], list[TracedRun]] = {}
    for run in trace.runs:
        if run.operation != "flush":
            stretches.setdefault((run.request_id, _lane(run)), []).append(run)
    rows = [_stretch_row(lane, runs) for (_, lane), runs in stretches.items()]
    rows.sort(key=lambda row: (CLASSES.index(row["class"]), row["lane"]))
    flushes = [_times(run) | {"cause": run.cause} for run in trace.runs if run.operation == "flush"]
    return rows, flushes


def which_commit(case: CaseSummary) -> str:
    """Say which commit of a case is drawn, or which checkpoint."""
    assert case.trace
    if case.trace.is_checkpoint:
        return f"the checkpoint {case.trace.transaction_id} of seed {case.trace.seed}"
    return f"transaction {case.trace.transaction_id} of seed {case.trace.seed}"


def _lane(run: TracedRun) -> str:
    """The file for data, the class for what has no file of its own."""
    file = run.file.rsplit("/", 1)[-1]
    return file if run.block_type == "data" and file else class_of(run.block_type, run.file_kind)


def _stretch_row(lane: str, runs: list[TracedRun]) -> Row:
    first = runs[0]
    kib = sum(run.length_bytes for run in runs) / 1024
    kinds = Counter(run.block_subtype for run in runs if run.block_subtype)
    marks = [", ".join(f"{n} × {kind}" if n > 1 else kind for kind, n in kinds.items())]
    marks += [first.operation] * (first.operation != "write")
    marks += ["preflush"] * first.preflush + ["FUA"] * first.fua
    return _times(first) | {
        "lane": lane,
        "class": class_of(first.block_type, first.file_kind),
        "sector": first.sector,
        "kib": kib,
        "text": " ".join([f"{kib:g} KiB", *filter(None, marks)]),
        "cause": first.cause,
    }


def _times(run: TracedRun) -> Row:
    # A request whose completion was not seen is drawn as a point at its issue.
    end_ns = run.issue_ns if run.complete_ns is None else run.complete_ns
    return {"begin_ms": run.issue_ns / 1e6, "end_ms": end_ns / 1e6}
