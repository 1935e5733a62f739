"""Which pieces does a bill add up? Every request and byte of its parts, each with its owner.

Beside pieces.py, what no page run accounts for is here a piece of its own, of block type unknown.
"""

from __future__ import annotations

from jojlab.analysis.rows.measured import CAPTURE, requests
from jojlab.analysis.rows.owners import with_owner
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables


def billed_pieces(tables: RunTables) -> ibis.Table:
    """Return what the bills add up: one row per page run or request without any, with its KEY."""
    owed = requests(tables)
    pieces = _run_pieces(tables, owed).union(_rest_pieces(tables, owed))
    request = owed.select(
        *CAPTURE,
        "request_id",
        "part",
        "operation",
        "submitter_comm",
        "submitter_call",
        "asker_call",
        "asker_file_id",
        "reason",
        "askers",
    )
    rows = pieces.inner_join(request, [*CAPTURE, "request_id"])
    return with_owner(rows, tables)


def _run_pieces(tables: RunTables, owed: ibis.Table) -> ibis.Table:
    """One piece per page run; the first of a request carries the request."""
    runs = tables.page_runs
    position = ibis.row_number().over(
        group_by=[*CAPTURE, "request_id"], order_by=[runs.sector, runs.length_bytes]
    )
    runs = runs.mutate(requests=(position == 0).ifelse(1, 0))
    runs = runs.semi_join(owed, [*CAPTURE, "request_id"])
    return runs.select(
        *CAPTURE,
        "request_id",
        "block_type",
        "file_kind",
        "file_id",
        "home",
        requests=runs["requests"].cast("int64"),
        bytes=runs["length_bytes"],
    )


def _rest_pieces(tables: RunTables, owed: ibis.Table) -> ibis.Table:
    """One piece per request whose page runs do not add up to it: flushes, and what is unknown."""
    runs = tables.page_runs
    covered = runs.group_by([*CAPTURE, "request_id"]).agg(
        runs=runs.count(), covered=runs.length_bytes.sum()
    )
    rest = owed.left_join(covered, [*CAPTURE, "request_id"])
    rest = rest.select(*owed.columns, "runs", covered=rest.covered.fill_null(0))
    bare = rest["runs"].isnull()
    rest = rest.filter(bare | (rest.covered != rest.length_bytes))
    # A read or write without page runs has no owner; a flush or discard has none to have.
    ownerless = rest["runs"].notnull() | rest.operation.isin(["read", "write"])
    return rest.select(
        *CAPTURE,
        "request_id",
        block_type=ownerless.ifelse("unknown", rest.block_type),
        file_kind=ownerless.ifelse("none", rest.file_kind),
        file_id=ownerless.ifelse(ibis.null("int64"), rest.file_id),
        home=ibis.null("string"),
        requests=rest["runs"].isnull().ifelse(1, 0).cast("int64"),
        bytes=rest.length_bytes - rest.covered.cast("int64"),
    )
