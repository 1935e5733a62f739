"""The tables of a run as Ibis tables: every capture's rows, with case_id and seed added.

DuckDB reads the Parquet files when a query runs; nothing is copied. The analyses see these tables
only, so the same code works for one capture and for a whole run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import ibis
import pyarrow as pa

from jojlab.errors import DataError
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
    names = {
        "case_id": [entry.case_id for entry, _, _ in captures],
        "seed": [seed for _, seed, _ in captures],
    }
    tables: dict[str, ibis.Table] = {}
    for table in TABLES:
        paths = [str(capture.path(table)) for _, _, capture in captures]
        rows = connection.read_parquet(
            [parquet_literal(path) for path in paths],
            filename=True,
            hive_partitioning=False,  # "filesystem=ext4" in a folder's name is no column
        )
        owners = ibis.memtable(pa.table({"filename": paths, **names}))
        tables[table] = rows.inner_join(owners, "filename").drop("filename")
    return RunTables(**tables)


def rows_of(expression: ibis.Table) -> list[dict[str, Any]]:
    """Run `expression` and return its rows as plain values."""
    rows: list[dict[str, Any]] = expression.to_pyarrow().to_pylist()
    return rows


def parquet_literal(path: str) -> str:
    """Quote the characters that DuckDB takes for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", path)
