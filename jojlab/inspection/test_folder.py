from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from jojlab.inspection import folder
from jojlab.inspection.database import JournalMode
from jojlab.inspection.folder import read_folder


def make(path: Path, journal_mode: str, page_bytes: int = 4096) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {page_bytes}")
    connection.execute(f"PRAGMA journal_mode = {journal_mode}")
    connection.execute("CREATE TABLE phone_book (name)")
    return connection


def test_databases_are_found_by_their_headers_whatever_their_names(tmp_path: Path) -> None:
    open_one = make(tmp_path / "org.app" / "databases" / "mail", "wal", 65536)
    make(tmp_path / "cache\nof two lines" / "x.png", "truncate").close()
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
    make(outside / "app.db", "delete").close()
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
        make(tmp_path / f"{number}.db", "delete").close()
    make(tmp_path / "a" / "b" / "c" / "deep.db", "delete").close()
    assert len(read_folder(tmp_path).databases) == 6
    monkeypatch.setattr(folder, "MOST_DEPTH", 3)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.deeper, contents.is_cut) == (5, 1, False)
    monkeypatch.setattr(folder, "MOST_NAMES", 4)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.is_cut) == (4, True)
    monkeypatch.setattr(folder, "MOST_DATABASES", 2)
    contents = read_folder(tmp_path)
    assert (len(contents.databases), contents.is_cut) == (2, True)


def test_another_filesystem_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "mounted" / "app.db", "delete").close()
    real = Path.stat
    other = os.stat("/dev/shm")
    monkeypatch.setattr(
        Path, "stat", lambda path, **more: other if path == tmp_path else real(path, **more)
    )
    contents = read_folder(tmp_path)
    assert (contents.databases, contents.other_filesystems) == ([], 1)
