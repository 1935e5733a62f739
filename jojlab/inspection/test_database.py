from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.inspection.database import HEADER_BYTES, JournalMode, read_database


def make(path: Path, *pragmas: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE phone_book (name, number)")
    connection.execute("INSERT INTO phone_book VALUES ('Ada', 1)")
    return connection


@pytest.mark.parametrize(
    ("mode", "seen"),
    [
        ("wal", JournalMode.WAL),
        ("truncate", JournalMode.TRUNCATE),
        ("persist", JournalMode.PERSIST),
        ("delete", JournalMode.NO_JOURNAL_FILE),
        ("memory", JournalMode.NO_JOURNAL_FILE),
    ],
)
def test_the_journal_mode_of_an_open_database_is_seen(
    tmp_path: Path, mode: str, seen: JournalMode
) -> None:
    path = tmp_path / "app.db"
    connection = make(path, f"journal_mode = {mode}")
    database = read_database(path)
    assert database
    assert database.journal_mode is seen
    assert (database.wal_frames > 0) == (mode == "wal")
    connection.close()


def test_a_journal_in_use_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    connection = make(path, "cache_size = 1", "cache_spill = 1")
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO phone_book WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
        "LIMIT 3000) SELECT hex(randomblob(200)), x FROM n"
    )
    database = read_database(path)
    assert database
    assert database.is_hot
    assert database.journal_mode is JournalMode.IN_A_TRANSACTION
    connection.execute("ROLLBACK")
    connection.close()


@pytest.mark.parametrize("page_bytes", [512, 4096, 65536])
def test_the_header_has_what_sqlite_says(tmp_path: Path, page_bytes: int) -> None:
    path = tmp_path / "app.db"
    pragmas = (f"page_size = {page_bytes}", "auto_vacuum = incremental", "application_id = -7",
               "user_version = 12")  # fmt: skip
    connection = make(path, *pragmas)
    database = read_database(path)
    assert database
    assert database.page_bytes == page_bytes == connection.execute("PRAGMA page_size").fetchone()[0]
    assert database.pages == connection.execute("PRAGMA page_count").fetchone()[0]
    assert database.auto_vacuum == "incremental"
    assert (database.application_id, database.user_version) == (-7, 12)
    connection.close()


def test_a_link_leads_to_the_journal_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "app.db"
    path.parent.mkdir()
    connection = make(path, "journal_mode = wal")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    database = read_database(link)
    assert database
    assert database.wal_frames > 0
    connection.close()


@given(st.binary(max_size=300))
def test_any_bytes_are_no_database_or_one(
    tmp_path_factory: pytest.TempPathFactory, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "app.db"
    for text in (tail, b"SQLite format 3\0" + tail):
        path.write_bytes(text)
        database = read_database(path)
        if database:
            assert len(text) >= HEADER_BYTES
            assert database.page_bytes in [1 << power for power in range(9, 17)]
