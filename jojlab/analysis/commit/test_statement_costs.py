"""Tests which statements the commits of a small live trace are of, worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.analysis.commit.statement_costs import statement_costs, without_values
from jojlab.analysis.run.summary import summarise
from jojlab.trace.run_folder import SQL_FOLDER, RunFolder
from jojlab.trace.schema import table_schema
from tests.captures import run_of, wal_capture

Row = dict[str, Any]
INSERT, UPDATE = "INSERT INTO t VALUES(?, ?)", "UPDATE t SET a = ?"


def write_recording(folder: Path, statements: list[Row]) -> None:
    """Write a recording of SQL with these statements; what they leave out is as of a write."""
    (folder / "statements").mkdir(parents=True)
    usual: Row = {
        "connection_id": 0, "tid": 1, "prepared_id": 0, "parameters": 0, "values_seen": True,
        "inside_ns": 1, "committed_ns": None, "result": 101, "error": None, "rows": 0,
        "changes": 1, "readonly": False, "transaction_end": None,
    }  # fmt: skip
    rows = [usual | row | {"statement_id": place} for place, row in enumerate(statements)]
    table = pa.Table.from_pylist(rows, table_schema("recording/statements").arrow())
    pq.write_table(table, folder / "statements/000000.parquet")
    facts = {"recording_version": 1, "recorder": "sqlite", "incomplete_reasons": ["a reason"]}
    entries = [{"key": key, "value": json.dumps(value)} for key, value in facts.items()]
    pq.write_table(pa.Table.from_pylist(entries), folder / "manifest.parquet")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Three commits: of one statement; of two in a transaction; of none that was recorded."""
    builder = wal_capture({"workload": "program"}, 1, 3)
    commits = [row for row in builder.tables["transactions"] if row["kind"] != "checkpoint"]
    for row in commits:
        row["kind"] = "commit"
    first, second, third = ((row["begin_ns"], row["return_ns"]) for row in commits)
    run = run_of(tmp_path / "run", builder)
    begin, end = second
    statements: list[Row] = [
        {"sql": "INSERT INTO t\n VALUES (1, 'a')", "transaction_id": 0,
         "begin_ns": first[0] + 1, "end_ns": first[1]},
        {"sql": "BEGIN", "transaction_id": 1, "readonly": True,
         "begin_ns": begin + 1, "end_ns": begin + 2},
        {"sql": "INSERT INTO t VALUES (2, 'b')", "transaction_id": 1,
         "begin_ns": begin + 3, "end_ns": begin + 4},
        {"sql": UPDATE, "transaction_id": 1, "begin_ns": begin + 5, "end_ns": begin + 6},
        {"sql": "COMMIT", "transaction_id": 1, "readonly": True,
         "begin_ns": end - 1, "end_ns": end},
        # Another thread's, at the time of the third.
        {"sql": "DELETE FROM t", "transaction_id": 2, "tid": 2,
         "begin_ns": third[0] + 1, "end_ns": third[1]},
    ]  # fmt: skip
    write_recording(run.path / SQL_FOLDER, statements)
    return run


def test_a_commit_is_shared_by_the_writing_statements_of_its_transaction(run: RunFolder) -> None:
    costs = statement_costs(run)
    assert costs
    assert (costs.commits, costs.unmatched_commits, costs.reasons) == (3, 1, ("a reason",))
    found = {each.sql: each for each in costs.statements}
    assert set(found) == {INSERT, UPDATE}
    insert, update = found[INSERT], found[UPDATE]
    assert (insert.commits, insert.executions) == (2, 2)
    assert (update.commits, update.executions) == (1, 1)
    [case] = summarise(run).cases
    assert case.statements == costs
    # Commits of one size: one is the first statement's alone, and half of another each statement's.
    assert insert.write_bytes == 3 * update.write_bytes > 0
    assert costs.statements == (insert, update)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("INSERT INTO t(a,\n b) VALUES (1.5, 'it''s') -- c", "INSERT INTO t(a, b) VALUES(?, ?)"),
        ("SELECT x.a FROM t1 AS x WHERE a=-2;", "SELECT x.a FROM t1 AS x WHERE a = - ?"),
        ('UPDATE "t" SET a = ?1', 'UPDATE "t" SET a = ?1'),
    ],
)
def test_statements_that_differ_in_values_are_one(sql: str, shown: str) -> None:
    assert without_values(sql) == shown


def test_a_run_without_a_recording_has_none(tmp_path: Path) -> None:
    assert statement_costs(run_of(tmp_path / "run", wal_capture({}, 1, 3))) is None
