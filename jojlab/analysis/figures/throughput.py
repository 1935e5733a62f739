"""How many transactions come back per second of the capture's clock?"""

from __future__ import annotations

import ibis

from jojlab.analysis.rows.measured import CAPTURE, checkpoints, commits
from jojlab.trace.run_tables import RunTables


def throughput(tables: RunTables) -> ibis.Table:
    """Return one row per capture, with rates in transactions per second.

    throughput_tps: from the first BEGIN to the return of the last COMMIT, less the time of the
    checkpoints between them. throughput_with_checkpoints_tps: the time of every checkpoint from
    the first BEGIN on is added, wherever it fell, so that no checkpoint is free.
    """
    rows = commits(tables)
    span = rows.group_by(CAPTURE).agg(
        transactions=rows.count(),
        first_ns=rows.begin_ns.min(),
        last_ns=rows.return_ns.max(),
        sync_calls=rows.sync_calls.sum(),
        busy_retries=rows.busy_retries.sum(),
    )
    stops = checkpoints(tables).inner_join(span, CAPTURE)
    duration = stops.return_ns - stops.begin_ns
    spent = stops.group_by(CAPTURE).agg(
        checkpoints=stops.count(),
        checkpoint_ns=duration.sum(),
        between_ns=duration.sum(where=stops.begin_ns < stops.last_ns),
    )
    joined = span.left_join(spent, CAPTURE)
    joined = joined.select(
        *span.columns,
        checkpoints=joined.checkpoints.fill_null(0),
        checkpoint_ns=joined.checkpoint_ns.fill_null(0),
        running_ns=joined.last_ns - joined.first_ns - joined.between_ns.fill_null(0),
    )
    return joined.select(
        *CAPTURE,
        "transactions",
        "checkpoints",
        "sync_calls",
        "busy_retries",
        throughput_tps=joined.transactions * 1e9 / joined.running_ns,
        throughput_with_checkpoints_tps=joined.transactions
        * 1e9
        / (joined.running_ns + joined.checkpoint_ns),
    )
