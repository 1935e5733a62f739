"""Tests what scripts say before they run: the databases that they attach, and what cannot be
repeated.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.recording.sql_text import script_facts


def facts_of(folder: Path, text: str, name: str = "transaction.sql") -> tuple[list[str], list[str]]:
    (folder / name).write_text(text)
    found = script_facts(folder)
    return [str(each) for each in found.unrepeatable], [str(each) for each in found.doubtful]


def test_the_databases_that_a_connection_has_open_are_counted(tmp_path: Path) -> None:
    text = "--! attach b.db AS b\n--! attach c.db AS c\nBEGIN;"
    (tmp_path / "transaction-a.sql").write_text(text)
    (tmp_path / "transaction-b.sql").write_text("--! database c.db\nSELECT '\n--! attach';")
    found = script_facts(tmp_path)
    assert (found.databases, found.attached) == (3, ("b", "c"))
    assert script_facts(tmp_path / "nowhere").databases == 1


def test_the_journal_modes_that_a_script_changes_to_are_known(tmp_path: Path) -> None:
    text = (
        "PRAGMA main.journal_mode = WAL;\nPRAGMA b . journal_mode(delete); PRAGMA journal_mode;"
        "\n/* x */ pragma journal_mode=persist; SELECT 'PRAGMA journal_mode = off';"
    )
    (tmp_path / "transaction.sql").write_text(text)
    assert script_facts(tmp_path).journal_modes == ("delete", "persist", "wal")


@pytest.mark.parametrize(
    ("statement", "by"),
    [
        ("INSERT INTO t VALUES (random())", "random()"),
        ("INSERT INTO t SELECT Random ( ) % 7 FROM u", "random()"),
        ("REPLACE INTO t VALUES (1, hex(randomblob(8)))", "randomblob()"),
        ("UPDATE t SET at = CURRENT_TIMESTAMP WHERE id = 3", "CURRENT_TIMESTAMP"),
        ("INSERT INTO t VALUES (datetime('now'))", "datetime()"),
        ("INSERT INTO t VALUES (julianday())", "julianday()"),
        ("INSERT INTO t VALUES (strftime('%s', 'now'))", "strftime()"),
        ("WITH c(x) AS (VALUES (1)) INSERT INTO t SELECT x + unixepoch() FROM c", "unixepoch()"),
    ],
)
def test_a_statement_that_writes_the_time_or_a_random_number_is_named(
    tmp_path: Path, statement: str, by: str
) -> None:
    certain, doubtful = facts_of(tmp_path, f"BEGIN;\n-- random()\n{statement};\nCOMMIT;\n")
    assert len(certain) == 1
    assert not doubtful
    assert certain[0].startswith("transaction.sql:3: ")
    assert certain[0].endswith(f"({by})")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES ('random()', \"random\", :random, :text(10))",
        "INSERT INTO random VALUES (1)",
        "INSERT INTO t VALUES (datetime(:int(1,9), 'unixepoch'))",
        "INSERT INTO t VALUES (date('now'))",
        "INSERT INTO t VALUES (strftime('%Y-%m-%d', 'now'))",
        "SELECT * FROM t ORDER BY random()",
        "/* random() */ UPDATE t SET x = 1",
    ],
)
def test_repeatable_statements_are_not_faults(tmp_path: Path, statement: str) -> None:
    assert facts_of(tmp_path, f"{statement};\n") == ([], [])


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (x, at TEXT DEFAULT CURRENT_TIMESTAMP)",
        "CREATE TRIGGER a AFTER INSERT ON t BEGIN\n"
        "INSERT INTO log VALUES (new.x);\nUPDATE t SET at = julianday('now');\nEND",
        "CREATE TRIGGER a AFTER INSERT ON t BEGIN\n"
        "UPDATE t SET x = CASE x WHEN 1 THEN 2 END; INSERT INTO log VALUES (random()); END",
        "DELETE FROM t WHERE at < strftime('%s', 'now')",
        "UPDATE t SET x = 1 WHERE id = abs(random()) % 9",
        "INSERT INTO t SELECT x FROM u WHERE at < datetime('now')",
    ],
)
def test_doubtful_statements_are_told_apart_from_faults(tmp_path: Path, statement: str) -> None:
    certain, doubtful = facts_of(tmp_path, f"{statement};\nSELECT 1;\n", "schema.sql")
    assert not certain
    assert len(doubtful) == 1
    assert doubtful[0].startswith("schema.sql:1: ")
