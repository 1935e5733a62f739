"""Which transactions and requests count as measured, and in which part of the bill they stand.

Warm-up is left out. `commit` is what happened while transactions ran; `deferred` is what they left
to be done later: checkpoints of the WAL, and what a sync at the end still wrote (settle).
`background` is what the case's background load caused, whenever that was.
"""

from __future__ import annotations

from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables

CAPTURE = ["case_id", "seed"]
# In this order they are shown.
PARTS = ("commit", "deferred", "background")

# Name of the load's process, and its files' directory (agent/src/workload/background/mod.rs).
_BACKGROUND_COMM = "joj-background"
_BACKGROUND_FILES = "/background/"


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
    """Return the requests of the bill, with `part`: commit, deferred or background.

    A request that a checkpoint made between two transactions is deferred work, whichever phase it
    was issued in. One for a file of the background load is the load's, whoever made the kernel
    write it.
    """
    checkpoint_ids = tables.transactions.filter(tables.transactions.kind == "checkpoint").select(
        *CAPTURE, "transaction_id", by_checkpoint=ibis.literal(True)
    )
    rows = tables.requests.left_join(checkpoint_ids, [*CAPTURE, "transaction_id"])
    rows = rows.select(*tables.requests.columns, "by_checkpoint")
    rows = rows.filter(rows.phase.isin(["commit", "checkpoint", "settle"]))
    loads = tables.files.filter(tables.files.path.startswith(_BACKGROUND_FILES))
    loads = loads.select(*CAPTURE, "file_id", of_load=ibis.literal(True))
    columns = rows.columns
    rows = rows.left_join(loads, [*CAPTURE, "file_id"]).select(*columns, "of_load")
    culprit = rows.asker_comm.fill_null(rows.submitter_comm)
    by_load = (culprit == _BACKGROUND_COMM) | rows.of_load.notnull()
    in_commit = (rows.phase == "commit") & rows.by_checkpoint.isnull()
    part = ibis.cases((by_load, "background"), (in_commit, "commit"), else_="deferred")
    return rows.mutate(part=part).drop("by_checkpoint", "of_load")
