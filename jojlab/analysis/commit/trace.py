"""What does one typical commit do, request by request?

Typical is the transaction whose number of requests and bytes lie nearest to the medians of its
case, in the case's first seed; of equals the one whose latency does, then the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jojlab.analysis.rows.measured import CAPTURE, commits
from jojlab.analysis.rows.owners import with_owner
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables, rows_of

_TRANSACTION = [*CAPTURE, "transaction_id"]


@dataclass(frozen=True)
class TracedRun:
    """One page run, or one flush (sector None, 0 bytes); times count from the BEGIN."""

    request_id: int
    queue_ns: int
    issue_ns: int
    complete_ns: int | None
    sector: int | None
    length_bytes: int
    operation: str
    fua: bool
    preflush: bool
    block_type: str
    block_subtype: str
    file_kind: str
    file: str
    cause: str


@dataclass(frozen=True)
class CommitTrace:
    """The page runs of one transaction, in the order of issue and sector."""

    case_id: str
    seed: int
    transaction_id: int
    latency_ns: int
    runs: Sequence[TracedRun]


def commit_traces(tables: RunTables) -> dict[str, CommitTrace]:
    """Return the typical commit of every case, by case_id."""
    typical = typical_commits(tables)
    traces: dict[str, CommitTrace] = {}
    runs: dict[str, list[TracedRun]] = {}
    for row in rows_of(typical):
        runs[row["case_id"]] = []
        traces[row["case_id"]] = CommitTrace(
            row["case_id"],
            row["seed"],
            row["transaction_id"],
            row["latency_ns"],
            runs[row["case_id"]],
        )
    for row in rows_of(_traced_runs(tables, typical)):
        runs[row.pop("case_id")].append(TracedRun(**row))
    return dict(sorted(traces.items()))


def typical_commits(tables: RunTables) -> ibis.Table:
    """Return one transaction per case, with begin_ns and latency_ns."""
    rows = commits(tables)
    rows = rows.filter(rows.seed == rows.seed.min().over(group_by="case_id"))
    made = tables.requests.group_by(_TRANSACTION).agg(
        made=tables.requests.count(), moved=tables.requests.length_bytes.sum()
    )
    joined = rows.left_join(made, _TRANSACTION)
    sized = joined.select(
        *_TRANSACTION,
        "begin_ns",
        latency_ns=joined.return_ns - joined.begin_ns,
        made=joined.made.fill_null(0),
        moved=joined.moved.fill_null(0),
    )
    middle = sized.group_by("case_id").agg(
        made_median=sized.made.median(),
        moved_median=sized.moved.median(),
        latency_median=sized.latency_ns.median(),
    )
    near = sized.inner_join(middle, "case_id")
    # Each distance in parts of its median, so that requests and bytes weigh alike.
    near = near.mutate(
        distance=(near.made - near.made_median).abs() / ibis.greatest(near.made_median, 1.0)
        + (near.moved - near.moved_median).abs() / ibis.greatest(near.moved_median, 1.0),
        apart_ns=(near.latency_ns - near.latency_median).abs(),
    )
    order = ibis.row_number().over(
        group_by="case_id", order_by=[near.distance, near.apart_ns, near.transaction_id]
    )
    near = near.mutate(place=order)
    return near.filter(near.place == 0).select(*_TRANSACTION, "begin_ns", "latency_ns")


def _traced_runs(tables: RunTables, typical: ibis.Table) -> ibis.Table:
    """Return the page runs of the typical commits; a request without any stands for itself."""
    requests = tables.requests.inner_join(typical, _TRANSACTION)
    request = requests.select(
        *tables.requests.columns,
        after_queue_ns=requests.queue_ns - requests.begin_ns,
        after_issue_ns=requests.issue_ns - requests.begin_ns,
        after_complete_ns=requests.complete_ns - requests.begin_ns,
    )
    own = ["sector", "length_bytes", "block_type", "block_subtype", "file_kind", "file_id"]
    runs = tables.page_runs.select(*CAPTURE, "request_id", **{f"run_{c}": c for c in own})
    rows = request.left_join(runs, [*CAPTURE, "request_id"]).select(
        *request.columns, *[f"run_{c}" for c in own]
    )
    without = rows.run_block_type.isnull()
    rows = rows.mutate(**{c: without.ifelse(rows[c], rows[f"run_{c}"]) for c in own})
    rows = with_owner(rows, tables)
    times = {f"{edge}_ns": f"after_{edge}_ns" for edge in ("queue", "issue", "complete")}
    rows = rows.drop(*times).rename(times)
    return rows.select("case_id", *TracedRun.__dataclass_fields__).order_by(
        "case_id", "issue_ns", "request_id", "sector"
    )
