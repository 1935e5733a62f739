from __future__ import annotations

import math
import sqlite3
import struct
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jojlab.foundation.errors import UseError
from jojlab.recording import sql_import
from jojlab.recording.attached import DatabaseNames
from jojlab.recording.sql_script import (
    ScriptCounts,
    SqlScript,
    SqlStatement,
    drawn_integer,
    literal_real,
    literal_text,
)


def script(*texts: str, values: Sequence[str] = ()) -> tuple[ScriptCounts, list[str]]:
    counts, names = ScriptCounts(), DatabaseNames()
    made = SqlScript("c", names("/a/x.db"), counts, names)
    for text in texts:
        made.add(SqlStatement(text, values))
    with TemporaryDirectory() as folder:
        made.write(path := Path(folder) / "it.sql")
        return counts, path.read_text().splitlines()[1:]


def test_a_statement_ends_whatever_stands_behind_it() -> None:
    counts, lines = script("SELECT 1", "SELECT 2;", "SELECT 3 -- last", "/* no more */", ";")
    assert lines[1:] == ["SELECT 1;", "SELECT 2;", "SELECT 3 -- last", ";"]
    assert (counts.statements, counts.left_out) == (3, {"comments alone": 2})
    assert counts.is_whole
    counts, _ = script("")
    assert list(counts.lines()) == ["left out: openings of blobs, which are no statements (1)"]


def test_statements_that_no_script_takes_become_comments_and_are_counted() -> None:
    counts, lines = script(
        "PRAGMA journal_mode=WAL", "PRAGMA main.journal_mode", "pragma foreign_keys = on;",
        "DETACH a", "VACUUM INTO 'x'", "PRAGMA wal_checkpoint", 'PRAGMA "main".mmap_size',
        "PRAGMA mmap_size(7)", "/* a */ PRAGMA no_such",
    )  # fmt: skip
    assert counts.statements == 3
    assert sum(counts.left_out.values()) == 6
    assert counts.is_whole  # nothing of it changes a row
    assert "-- left out: PRAGMA journal_mode=WAL" in lines
    assert "pragma foreign_keys = on;" in lines


def test_a_database_that_is_attached_stands_in_the_head_under_a_name_of_its_own() -> None:
    counts, lines = script("ATTACH DATABASE '/b/x.db' AS other", "SELECT 1")
    assert lines == ["--! database x.db", "--! attach x-1.db AS other", "SELECT 1;"]
    assert not counts.left_out


def test_a_name_that_is_bound_is_that_of_a_file() -> None:
    _, lines = script("ATTACH ? AS b", values=["'/b/it''s.db'"])
    assert lines[1:] == ["--! attach it_s.db AS b"]


def test_statements_of_unattached_databases_are_left_out_and_counted() -> None:
    counts, lines = script(
        "ATTACH 'archive-01.db' AS archive",
        "CREATE TABLE IF NOT EXISTS archive.row(id INTEGER PRIMARY KEY, v)",
        "CREATE TABLE row(id)",
        "INSERT INTO archive.row(v) VALUES (1)",
        "DETACH archive",
        "ATTACH 'archive-02.db' AS archive",
        "CREATE TABLE IF NOT EXISTS archive.row(id INTEGER PRIMARY KEY, v)",
        "INSERT INTO Archive.row(v) VALUES (2)",
        "DELETE FROM main.row",
        "DETACH DATABASE archive",
        'ATTACH DATABASE "quoted name.db" AS "q n"',
        'CREATE TABLE "q n".other(x)',
        "INSERT INTO other VALUES (1)",
        "ATTACH 'file:ro.db?mode=rwc&cache=private' AS uri",
        "CREATE TABLE uri.t(x)",
        "ATTACH '' AS scratch",
        "CREATE TABLE scratch.t(x)",
        "ATTACH 'a' || 'b' AS made",
        "VACUUM made",
    )
    assert [line for line in lines if not line.startswith("-- left out")] == [
        "--! database x.db",
        "--! attach archive-01.db AS archive",
        "CREATE TABLE IF NOT EXISTS archive.row(id INTEGER PRIMARY KEY, v);",
        "CREATE TABLE row(id);",
        "INSERT INTO archive.row(v) VALUES (1);",
        "DELETE FROM main.row;",
    ]
    assert counts.missing == {
        "ATTACH of another file by a name that was attached before": 1,
        "ATTACH of a database that no script can attach in its head": 4,
        "statements that need a database that no script attaches": 7,
    }
    assert not counts.is_whole


def test_a_setup_attaches_nothing() -> None:
    counts, names = ScriptCounts(), DatabaseNames()
    made = SqlScript("", "main.db", counts, names)
    made.add(SqlStatement("ATTACH 'x.db' AS x"))
    assert sum(counts.missing.values()) == 1


def test_comments_of_others_are_no_directives() -> None:
    counts, lines = script("--! bind 1\nSELECT 1", "SELECT '\n--! end\n'", "SELECT 2\n--! end\n")
    assert lines[1:] == [
        "-- ! bind 1", "SELECT 1;", "SELECT '", "--! end", "';", "SELECT 2", "-- ! end", ";",
    ]  # fmt: skip
    assert counts.is_whole


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


def import_statements(tmp_path: Path, text: str | bytes) -> list[str]:
    path = tmp_path / "app.sql"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(sql_import.statements(path))


@pytest.mark.parametrize("head", ["connection 0", "database a.db"])
def test_a_script_of_our_own_is_not_imported_without_its_values(head: str, tmp_path: Path) -> None:
    with pytest.raises(UseError, match="already a script of joj"):
        import_statements(tmp_path, f"--! {head}\n--! bind 1\nINSERT INTO t VALUES (?);\n")


def test_lines_are_statements_where_semicolons_are_missing(tmp_path: Path) -> None:
    text = "BEGIN EXCLUSIVE;\nINSERT INTO t VALUES('a;b')\nselect 1\nCOMMIT;\n"
    assert import_statements(tmp_path, text) == text.splitlines()


def test_statements_go_over_lines_and_share_them(tmp_path: Path) -> None:
    trigger = "CREATE TRIGGER r AFTER INSERT ON t BEGIN\n DELETE FROM t; SELECT 1;\nEND;"
    text = f"-- begin\nSELECT 1; SELECT ';';\n{trigger}\nINSERT INTO t VALUES('a\nb')"
    assert import_statements(tmp_path, text) == [
        "SELECT 1", "SELECT ';'", trigger[:-1], "INSERT INTO t VALUES('a\nb')",
    ]  # fmt: skip


def test_a_line_is_a_statement_only_where_it_is_whole(tmp_path: Path) -> None:
    text = """BEGIN;
INSERT INTO reading(sensor, at, value)
VALUES (1, 1700000000, 20.5);
INSERT INTO archive
SELECT * FROM reading;
WITH last AS (SELECT max(at) AS at FROM archive)
SELECT * FROM last;
COMMIT;
"""
    assert [found.split()[0] for found in import_statements(tmp_path, text)] == [
        "BEGIN", "INSERT", "INSERT", "WITH", "COMMIT",
    ]  # fmt: skip
    with pytest.raises(UseError, match=r"app\.sql:2: no statement of SQL"):
        import_statements(
            tmp_path, "BEGIN;\nSELECT 1\nSELECT 2 FROM t WHERE\nUPDATE t SET a = 1;\n"
        )


def test_text_of_every_encoding_is_read_or_refused_with_its_line(tmp_path: Path) -> None:
    text = "CREATE TABLE t(v TEXT);\r\nINSERT INTO t VALUES ('x\r\ny\u00e9');\r\n"
    wanted = ["CREATE TABLE t(v TEXT)", "INSERT INTO t VALUES ('x\r\ny\u00e9')"]
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert import_statements(tmp_path, text.encode(encoding)) == wanted, encoding
    for data, what in (
        (
            text.encode("utf-16-le"),
            "app\\.sql:1: a NUL character: UTF-16 without a",
        ),
        (b"SELECT 1;\nSELECT 'x\0y';", "app\\.sql:2: a NUL character"),
        (b"SELECT 1;\nSELECT '\xff';", "app\\.sql:2: byte 18 is no UTF-8"),
    ):
        with pytest.raises(UseError, match=what):
            import_statements(tmp_path, data)


def test_parameters_of_a_script_are_null(tmp_path: Path) -> None:
    (tmp_path / "app.sql").write_text("INSERT INTO t VALUES (?, :name);")
    sql_import.write([tmp_path / "app.sql"], [], tmp_path / "made")
    lines = (tmp_path / "made/transaction-000.sql").read_text().splitlines()
    assert lines[2:] == ["--! bind NULL, NULL", "INSERT INTO t VALUES (?, :name);"]


def test_text_that_is_no_sql_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UseError, match=r"app\.sql:2: no statement of SQL: 'nonsense'"):
        import_statements(tmp_path, "SELECT 1;\nnonsense;\n")


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
