"""What does each request consist of? One row per page run; a request without any is one piece."""

from __future__ import annotations

from jojlab.analysis.rows.measured import CAPTURE
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables

# The columns that a page run has of its own, where there is one.
OWN = ("sector", "length_bytes", "block_type", "block_subtype", "file_kind", "file_id")


def pieces(requests: ibis.Table, tables: RunTables) -> ibis.Table:
    """Return `requests` cut into their page runs, with `first`: true in one piece of each request.

    The sum over `first` is the number of requests, that of length_bytes their bytes.
    """
    runs = tables.page_runs
    position = ibis.row_number().over(
        group_by=[*CAPTURE, "request_id"], order_by=[runs.sector, runs.length_bytes]
    )
    runs = runs.select(*CAPTURE, "request_id", run_place=position, **{f"run_{c}": c for c in OWN})
    names = [f"run_{column}" for column in OWN]
    rows = requests.left_join(runs, [*CAPTURE, "request_id"])
    rows = rows.select(*requests.columns, "run_place", *names)
    whole = rows.run_place.isnull()
    rows = rows.mutate(
        first=rows.run_place.fill_null(0) == 0,
        **{column: whole.ifelse(rows[column], rows[f"run_{column}"]) for column in OWN},
    )
    return rows.drop("run_place", *names)
