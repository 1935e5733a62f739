"""The tables of a run as Ibis tables: every capture's rows, with case_id and seed added.

DuckDB reads the Parquet files when a query runs; nothing is copied. The analyses see these tables
only, so the same code works for one capture and for a whole run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jojlab.foundation.errors import DataError
from jojlab.foundation.lazy import ibis, pa
from jojlab.trace.capture import Capture
from jojlab.trace.parquet_files import select_rows
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import TABLES


@dataclass(frozen=True)
class RunTables:
    """The schema's tables over all captures of a run; keys are unique with (case_id, seed)."""

    requests: ibis.Table
    page_runs: ibis.Table
    files: ibis.Table
    transactions: ibis.Table
    counters: ibis.Table
    manifest: ibis.Table


def open_tables(run: RunFolder) -> RunTables:
    """Open every capture of `run`; raises DataError when there is none, or one is damaged."""
    captures = list(run.captures())
    if not captures:
        raise DataError(
            f"{run.path}: no case of this run has finished", "see the reasons: joj show RUN"
        )
    connection = ibis.duckdb.connect()
    opened = [capture for _, _, capture in captures]
    tables: dict[str, ibis.Table] = {}
    for table in TABLES:
        select = select_rows(dict(enumerate(opened)), table)
        connection.con.execute(f"CREATE VIEW files_of_{table} AS {select}")
        rows = connection.table(f"files_of_{table}")
        owners = f"captures_of_{table}"
        names = {
            "capture": list(range(len(opened))),
            "case_id": [entry.case_id for entry, _, _ in captures],
            "seed": [seed for _, seed, _ in captures],
        }
        connection.con.register(owners, pa.table(names))
        owned = rows.inner_join(connection.table(owners), "capture").drop("capture")
        tables[table] = connection.create_view(table, owned)
    _check_counts(tables, opened, run)
    return RunTables(**tables)


def _check_counts(tables: dict[str, ibis.Table], captures: list[Capture], run: RunFolder) -> None:
    """Check that every row of every capture found its owner: a lost one would not show later."""
    counts = [
        rows.aggregate(n=rows.count()).mutate(table=ibis.literal(name))
        for name, rows in tables.items()
    ]
    for row in rows_of(ibis.union(*counts)):
        wanted = sum(capture.row_counts[row["table"]] for capture in captures)
        if row["n"] != wanted:
            raise DataError(
                f"{run.path}: {row['n']} rows of {row['table']} were read, {wanted} are there",
                "leave the run alone while it is read",
            )


def rows_of(expression: ibis.Table) -> list[dict[str, Any]]:
    """Run `expression` and return its rows as plain values."""
    rows: list[dict[str, Any]] = expression.to_pyarrow().to_pylist()
    return rows
