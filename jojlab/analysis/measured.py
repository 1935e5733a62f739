"""Which transactions and requests count as measured, and in which part of the bill they stand.

Warm-up is left out. `commit` is what happened while transactions ran; `deferred` is what they left
to be done later: checkpoints of the WAL, and what a sync at the end still wrote (settle).
"""

from __future__ import annotations

import ibis

from jojlab.trace.run_tables import RunTables

CAPTURE = ["case_id", "seed"]


def commits(tables: RunTables) -> ibis.Table:
    """Return the measured transactions, without checkpoints."""
    rows = tables.transactions
    return rows.filter(rows.phase == "commit", rows.kind != "checkpoint")


def checkpoints(tables: RunTables) -> ibis.Table:
    """Return the checkpoints that began after the first measured transaction."""
    start = commits(tables).group_by(CAPTURE).agg(start_ns=lambda t: t.begin_ns.min())
    rows = tables.transactions.filter(tables.transactions.kind == "checkpoint")
    return rows.inner_join(start, CAPTURE).filter(lambda t: t.begin_ns >= t.start_ns)


def requests(tables: RunTables) -> ibis.Table:
    """Return the requests of the bill, with `part`: commit or deferred.

    A request that a checkpoint made between two transactions is deferred work, whichever phase it
    was issued in.
    """
    checkpoint_ids = tables.transactions.filter(tables.transactions.kind == "checkpoint").select(
        *CAPTURE, "transaction_id", by_checkpoint=ibis.literal(True)
    )
    rows = tables.requests.left_join(checkpoint_ids, [*CAPTURE, "transaction_id"])
    rows = rows.select(*tables.requests.columns, "by_checkpoint")
    rows = rows.filter(rows.phase.isin(["commit", "checkpoint", "settle"]))
    in_commit = (rows.phase == "commit") & rows.by_checkpoint.isnull()
    return rows.mutate(part=in_commit.ifelse("commit", "deferred")).drop("by_checkpoint")
