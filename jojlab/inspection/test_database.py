from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.inspection import database
from jojlab.inspection.database import HEADER_BYTES, JournalMode, read_database, read_folder


def make(path: Path, *pragmas: str) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
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


def test_databases_are_found_by_their_headers_whatever_their_names(tmp_path: Path) -> None:
    open_one = make(
        tmp_path / "org.app" / "databases" / "mail", "page_size = 65536", "journal_mode = wal"
    )
    make(tmp_path / "cache\nof two lines" / "x.png", "journal_mode = truncate").close()
    (tmp_path / "notes.db").write_text("no database, whatever its name")
    (tmp_path / "empty.db").touch()
    contents = read_folder(tmp_path)
    found = [str(each.path.relative_to(tmp_path)) for each in contents.databases]
    assert found == ["cache\nof two lines/x.png", "org.app/databases/mail"]
    assert contents.modes() == {JournalMode.TRUNCATE: 1, JournalMode.WAL: 1}
    assert contents.page_sizes() == {4096: 1, 65536: 1}
    assert contents.databases[1].wal_frames > 0
    # The databases, a journal, a WAL and its shared memory, the note and the empty file.
    assert (contents.files, contents.unread, contents.headless) == (7, 0, 0)
    open_one.close()


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    make(outside / "app.db", "journal_mode = delete").close()
    inside.mkdir()
    (inside / "folder").symlink_to(outside)
    (inside / "app.db").symlink_to(outside / "app.db")
    (inside / "itself").symlink_to(inside)
    os.mkfifo(inside / "pipe")
    contents = read_folder(inside)
    assert (contents.databases, contents.links, contents.files) == ([], 3, 0)
    link = tmp_path / "link"
    link.symlink_to(outside)
    assert [each.path.name for each in read_folder(link).databases] == ["app.db"]


def test_a_file_with_a_journal_and_no_header_is_counted(tmp_path: Path) -> None:
    (tmp_path / "signal.db").write_bytes(os.urandom(4096))
    (tmp_path / "signal.db-wal").write_bytes(os.urandom(4096))
    contents = read_folder(tmp_path)
    assert (contents.databases, contents.headless, contents.files) == ([], 1, 2)


def test_the_bounds_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        make(tmp_path / f"{number}.db", "journal_mode = delete").close()
    make(tmp_path / "a" / "b" / "c" / "deep.db", "journal_mode = delete").close()
    assert len(read_folder(tmp_path).databases) == 6
    monkeypatch.setattr(database, "MOST_DEPTH", 3)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.deeper, contents.is_cut) == (5, 1, False)
    monkeypatch.setattr(database, "MOST_NAMES", 4)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.is_cut) == (4, True)
    monkeypatch.setattr(database, "MOST_DATABASES", 2)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.is_cut) == (2, True)


def test_another_filesystem_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "mounted" / "app.db", "journal_mode = delete").close()
    real = Path.stat
    other = os.stat("/dev/shm")
    monkeypatch.setattr(
        Path, "stat", lambda path, **more: other if path == tmp_path else real(path, **more)
    )
    contents = read_folder(tmp_path)
    assert (contents.databases, contents.other_filesystems) == ([], 1)
