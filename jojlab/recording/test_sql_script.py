from __future__ import annotations

import math
import sqlite3
import struct
from pathlib import Path

import pytest

from jojlab.foundation.errors import UseError
from jojlab.recording import sql_import
from jojlab.recording.sql_script import (
    DatabaseNames,
    ScriptCounts,
    SqlScript,
    SqlStatement,
    drawn_integer,
    literal_real,
    literal_text,
)


def script(*texts: str) -> tuple[ScriptCounts, list[str]]:
    counts, names = ScriptCounts(), DatabaseNames()
    made = SqlScript("c", names("/a/x.db"), counts, names)
    for text in texts:
        made.add(SqlStatement(text))
    return counts, made._head[1:] + made._lines


def test_a_statement_ends_whatever_stands_behind_it() -> None:
    counts, lines = script("SELECT 1", "SELECT 2;", "SELECT 3 -- last", "/* no more */")
    assert lines[1:] == ["SELECT 1;", "SELECT 2;", "SELECT 3 -- last\n;"]
    assert (counts.statements, counts.left_out) == (3, {"comments alone": 1})


def test_what_a_script_does_not_take_is_counted_and_stands_there_as_a_comment() -> None:
    counts, lines = script(
        "PRAGMA journal_mode=WAL", "PRAGMA main.journal_mode", "pragma foreign_keys = on;",
        "DETACH a", "VACUUM INTO 'x'", "ATTACH ? AS b",
    )  # fmt: skip
    assert counts.statements == 2
    assert sum(counts.left_out.values()) == 4
    assert "-- left out: PRAGMA journal_mode=WAL" in lines
    assert "pragma foreign_keys = on;" in lines


def test_a_database_that_is_attached_stands_in_the_head_under_a_name_of_its_own() -> None:
    counts, lines = script("ATTACH DATABASE '/b/x.db' AS other", "SELECT 1")
    assert lines == ["--! database x.db", "--! attach x-1.db AS other", "SELECT 1;"]
    assert not counts.left_out


@pytest.mark.parametrize(
    "value", [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e22, math.inf, -math.inf, 123456789.125]
)
def test_a_real_keeps_its_bits(value: float) -> None:
    (back,) = sqlite3.connect(":memory:").execute(f"SELECT {literal_real(value)} + 0").fetchone()
    if value:  # SQLite has one zero
        assert struct.pack("d", back) == struct.pack("d", value)
    assert literal_real(math.nan) == "NULL"


def test_text_of_any_bytes_fits_on_a_line() -> None:
    assert literal_text(b"it's") == "'it''s'"
    assert literal_text("\u00e9".encode()) == "'\u00e9'"
    for odd in (b"a\nb", b"a\0b", "\u2028".encode()):
        assert literal_text(odd) == f"text x'{odd.hex()}'"
    with pytest.raises(UnicodeDecodeError):
        literal_text(b"\xff")
    assert drawn_integer(2) == "int(128,32767)"


def imported(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "app.sql"
    path.write_text(text)
    return list(sql_import.statements(path))


def test_lines_are_statements_where_semicolons_are_missing(tmp_path: Path) -> None:
    text = "BEGIN EXCLUSIVE;\nINSERT INTO t VALUES('a;b')\nselect 1\nCOMMIT;\n"
    assert imported(tmp_path, text) == text.splitlines()


def test_statements_go_over_lines_and_share_them(tmp_path: Path) -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON t BEGIN\n DELETE FROM t; SELECT 1;\nEND;"
    text = f"-- begin\nSELECT 1; SELECT ';';\n{trigger}\nINSERT INTO t VALUES('a\nb')"
    assert imported(tmp_path, text) == [
        "-- begin\nSELECT 1;", "SELECT ';';", trigger, "INSERT INTO t VALUES('a\nb')",
    ]  # fmt: skip


def test_text_that_is_no_sql_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=r"app\.sql:2: no statement of SQL: 'nonsense;'"):
        imported(tmp_path, "SELECT 1;\nnonsense;\n")


def test_a_script_without_a_statement_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.sql").write_text("-- nothing\n")
    with pytest.raises(UseError, match=r"empty\.sql: no statement of SQL"):
        sql_import.write([tmp_path / "empty.sql"], [], tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_scripts_are_numbered_and_what_fills_the_database_stands_apart(tmp_path: Path) -> None:
    for name, text in (("0", "SELECT 1;"), ("1", "SELECT 2;"), ("load", "CREATE TABLE t(a);")):
        (tmp_path / f"{name}.sql").write_text(text)
    folder = tmp_path / "made"
    counts = sql_import.write(
        [tmp_path / "0.sql", tmp_path / "1.sql"], [tmp_path / "load.sql"], folder
    )
    assert (counts.statements, sum(counts.left_out.values())) == (3, 0)
    assert (folder / "setup.sql").read_text() == "--! database main.db\nCREATE TABLE t(a);\n"
    last = folder / "transaction-001.sql"
    assert last.read_text() == "--! connection 1.sql\n--! database main.db\nSELECT 2;\n"
    with pytest.raises(UseError, match="not empty"):
        sql_import.write([tmp_path / "0.sql"], [], folder)
