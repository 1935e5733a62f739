"""How long does an app wait for a transaction? Exact percentiles of measured values, nothing
interpolated. A checkpoint counts with the transaction that made it due: SQLite makes it inside that
one's COMMIT, unless the workload makes it as a step of its own.
"""

from __future__ import annotations

from jojlab.analysis.rows.measured import CAPTURE, commits
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables

# Name of a figure's percentile -> share of the values at or below it, in thousandths.
PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999, "max": 1000}


def durations(tables: RunTables) -> ibis.Table:
    """Return one row per measured transaction: latency_ns and commit_latency_ns.

    latency_ns goes from before BEGIN to the return of COMMIT, commit_latency_ns from before COMMIT.
    To latency_ns the time of the checkpoints is added that the same thread made after the
    transaction and before its next one: the last of them is what closing the database waits for. A
    checkpoint inside a COMMIT is in both.
    """
    rows = commits(tables)
    waited = _checkpoint_waits(tables)
    joined = rows.left_join(waited, [*CAPTURE, "transaction_id"])
    return joined.select(
        *CAPTURE,
        "transaction_id",
        latency_ns=joined.return_ns - joined.begin_ns + joined.waited_ns.fill_null(0),
        commit_latency_ns=joined.return_ns - joined.commit_ns,
    )


def _checkpoint_waits(tables: RunTables) -> ibis.Table:
    """Return waited_ns of the transactions that checkpoints of their thread came after."""
    rows = tables.transactions
    number = (rows.kind != "checkpoint").cast("int64").sum()
    thread = [*CAPTURE, "thread"]
    rows = rows.mutate(
        number=number.over(
            ibis.cumulative_window(group_by=thread, order_by=[rows.begin_ns, rows.transaction_id])
        )
    )
    stops = rows.filter(rows.kind == "checkpoint").select(
        *thread, "number", stop_begin_ns="begin_ns", stop_return_ns="return_ns"
    )
    joined = rows.filter(rows.kind != "checkpoint").inner_join(stops, [*thread, "number"])
    # One inside the COMMIT has returned before it, and adds nothing.
    after_ns = joined.stop_return_ns - ibis.greatest(joined.stop_begin_ns, joined.return_ns)
    return joined.group_by([*CAPTURE, "transaction_id"]).agg(
        waited_ns=ibis.greatest(after_ns, 0).sum()
    )


def percentiles(tables: RunTables, by: list[str]) -> ibis.Table:
    """Return latency_ns_p50 ... latency_ns_max and commit_latency_ns_... for each group of `by`.

    Nearest rank (ISO 3534-1 sample quantile without interpolation): the smallest measured value
    that at least the given share of the values do not exceed.
    """
    return _nearest_rank(durations(tables), "latency_ns", by).inner_join(
        _nearest_rank(durations(tables), "commit_latency_ns", by), by
    )


def _nearest_rank(rows: ibis.Table, column: str, by: list[str]) -> ibis.Table:
    value = rows[column]
    rows = rows.mutate(
        rank=ibis.row_number().over(group_by=by, order_by=value) + 1,  # Ibis counts from 0
        total=rows.count().over(group_by=by),
    )
    # ceil(share * total) in whole numbers
    return rows.group_by(by).agg(
        **{
            f"{column}_{name}": rows[column].min(
                where=rows["rank"] == (rows["total"] * share + 999) // 1000
            )
            for name, share in PERCENTILES.items()
        }
    )
