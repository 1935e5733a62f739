"""How long does a transaction take? Exact percentiles of measured values, nothing interpolated."""

from __future__ import annotations

import ibis

from jojlab.analysis.rows.measured import CAPTURE, commits
from jojlab.trace.run_tables import RunTables

# Name of a figure's percentile -> share of the values at or below it, in thousandths.
PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999, "max": 1000}


def durations(tables: RunTables) -> ibis.Table:
    """Return one row per measured transaction: latency_ns and commit_latency_ns.

    latency_ns goes from before BEGIN to the return of COMMIT, commit_latency_ns from before COMMIT.
    """
    rows = commits(tables)
    return rows.select(
        *CAPTURE,
        "transaction_id",
        latency_ns=rows.return_ns - rows.begin_ns,
        commit_latency_ns=rows.return_ns - rows.commit_ns,
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
