"""The requests of one commit as rows of a table: operation, time, owner and cause."""

from __future__ import annotations

from jojlab.analysis.commit.trace import CommitTrace, TracedRun
from jojlab.report.sections.template import Cell, Noted
from jojlab.report.words import text

COLUMNS = ("", "operation", "block type", "file", "cause", "KiB", "sector", "after BEGIN", "took")


def commit_rows(trace: CommitTrace) -> list[list[Cell]]:
    """Return one row for each page run or flush, in the order of issue; stretches are added up.

    Neighbouring page runs of one request and owner stand in one row.
    """
    rows: list[list[Cell]] = []
    last: TracedRun | None = None
    for runs in _stretches(trace):
        first = runs[0]
        again = last is not None and last.request_id == first.request_id
        number = "" if again else str(len({r.request_id for r in _until(trace, first)}))
        rows.append([number, *_cells(runs)])
        last = first
    return rows


def _stretches(trace: CommitTrace) -> list[list[TracedRun]]:
    stretches: list[list[TracedRun]] = []
    for run in trace.runs:
        if stretches and _owner(stretches[-1][0]) == _owner(run):
            stretches[-1].append(run)
        else:
            stretches.append([run])
    return stretches


def _until(trace: CommitTrace, run: TracedRun) -> list[TracedRun]:
    return list(trace.runs[: trace.runs.index(run) + 1])


def _owner(run: TracedRun) -> tuple[int, str, str, str]:
    return run.request_id, run.block_type, run.block_subtype, run.file


def _cells(runs: list[TracedRun]) -> list[Cell]:
    first = runs[0]
    flush = first.operation == "flush"
    marks = [first.operation, "preflush" * first.preflush, "FUA" * first.fua]
    several = f"{len(runs)} \u00d7 " if len(runs) > 1 and first.block_subtype else ""
    took = (
        "\u2013" if first.complete_ns is None else text.duration(first.complete_ns - first.issue_ns)
    )
    return [
        ", ".join(mark for mark in marks if mark) if not flush else "flush",
        "" if flush else Noted(first.block_type, several + first.block_subtype),
        first.file,
        first.cause,
        "" if flush else text.kib(sum(run.length_bytes for run in runs)),
        "" if first.sector is None else f"{first.sector:,}",
        text.duration(first.issue_ns),
        took,
    ]
