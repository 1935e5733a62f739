from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.foundation.errors import UseError
from jojlab.inspection.database import read_database
from jojlab.inspection.sqlite_library import read_library
from jojlab.inspection.storage import Mount
from jojlab.inspection.target import Target, case_like, inspect_target, median_sync_ns


def target_of(path: Path, filesystem: str, *options: str) -> Target:
    mount = Mount(path.parent, filesystem, "/dev/vda", options, (254, 0))
    database = read_database(path) if path.is_file() else None
    return Target(path, database, mount, None, None)


def wal_database(folder: Path) -> Path:
    path = folder / "app.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE phone_book (name)")
    return path


def test_a_case_like_a_database_has_its_fields(tmp_path: Path) -> None:
    target = target_of(wal_database(tmp_path), "ext4", "rw", "relatime", "data=writeback", "odd=1")
    fields, notes = case_like(target)
    assert fields == {
        "filesystem": "ext4",
        "mount_options": "data=writeback",
        "journal_mode": "wal",
        "page_size_bytes": 1024,
    }
    assert notes[0].startswith(f"as {target.path}: filesystem=ext4, mount_options=data=writeback")
    assert notes[-2] == "mount options that a case cannot have are left out: odd=1"
    assert "synchronous" in notes[-1]


@pytest.mark.parametrize(
    ("block_bytes", "is_upper", "left_out"),
    [
        (4096, False, ()),
        (1024, False, ("its blocks of 1024 bytes are left out",)),
        (0, True, ("an overlay is above it",)),
    ],
)
def test_settings_that_a_case_leaves_out_are_noted(
    tmp_path: Path, block_bytes: int, is_upper: bool, left_out: tuple[str, ...]
) -> None:
    target = target_of(wal_database(tmp_path), "ext4", "rw")
    mount = replace(target.mount, is_upper=is_upper)
    _, notes = case_like(replace(target, mount=mount, block_bytes=block_bytes))
    assert len(notes) == 2 + len(left_out)
    assert all(note.startswith(words) for note, words in zip(notes[1:], left_out, strict=False))


def test_given_fields_are_not_called_the_files(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE phone_book (name)")
    target = target_of(path, "ext4")
    _, [taken, assumed, unknown] = case_like(target)
    assert "journal_mode=delete" in taken
    assert "is assumed" in assumed
    assert unknown.startswith("no file tells synchronous, the sync call and the device: give them")
    given = {"journal_mode": "wal", "synchronous": "full", "sync_call": "fdatasync"}
    fields, [taken, unknown] = case_like(target, given)
    assert not any("journal_mode" in words for words in (*fields, taken))
    assert unknown == "no file tells the device: give it, or the default holds"


@pytest.mark.parametrize("value", ["FULL", "INCREMENTAL"])
def test_a_case_like_a_database_has_its_auto_vacuum(tmp_path: Path, value: str) -> None:
    with sqlite3.connect(tmp_path / "app.db", isolation_level=None) as connection:
        connection.execute(f"PRAGMA auto_vacuum = {value}")
        connection.execute("CREATE TABLE phone_book (name)")
    fields, _ = case_like(target_of(tmp_path / "app.db", "ext4"))
    assert fields["auto_vacuum"] == value.lower()


def test_a_journal_mode_that_no_file_tells_is_an_assumption(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE phone_book (name)")
        connection.execute("PRAGMA journal_mode = off")
        fields, notes = case_like(target_of(path, "ext4"))
        assert fields["journal_mode"] == "delete"
        assert notes[1].endswith("MEMORY and OFF leave the same files")
        # A cache of one page is spilled, for which the journal's header is written first.
        connection.execute("PRAGMA journal_mode = persist")
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO phone_book VALUES (?)", [("x" * 3000,) for _ in range(99)]
        )
        fields, notes = case_like(target_of(path, "ext4"))
    assert fields["journal_mode"] == "delete"
    assert notes[1].endswith("TRUNCATE and PERSIST have one like it")


def test_ext4_without_a_journal_is_seen_by_its_drivers_options(tmp_path: Path) -> None:
    target = target_of(tmp_path, "ext4", "rw")
    for lines, mkfs_options in (
        (("rw", "barrier", "data=ordered"), None),
        (("rw", "barrier"), "-O ^has_journal"),
        ((), None),
    ):
        mount = replace(target.mount, driver_options=lines)
        fields, _ = case_like(replace(target, mount=mount))
        assert fields.get("mkfs_options") == mkfs_options


def test_a_filesystem_that_the_lab_lacks_is_said(tmp_path: Path) -> None:
    fields, notes = case_like(target_of(tmp_path, "overlay", "rw"))
    assert fields == {}
    assert notes[1] == "the lab has no overlay: give --filesystem yourself"


def test_a_missing_file_is_a_use_error(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="no such file"):
        inspect_target(tmp_path / "none.db")


def test_a_file_that_cannot_be_read_is_a_use_error() -> None:
    with pytest.raises(UseError, match="/proc/self/mem: cannot be read: Input/output error"):
        inspect_target(Path("/proc/self/mem"))


def test_a_case_like_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(bytes(4096))
    _, notes = case_like(inspect_target(tmp_path / "junk.db"))
    assert "it has no header of SQLite" in " ".join(notes)


def test_a_chosen_library_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="--library /bin/true: the loader takes it for no library"):
        inspect_target(tmp_path, "/bin/true")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UseError, match="neither a file nor a directory"):
        inspect_target(tmp_path / "pipe")


def test_a_tried_sync_leaves_no_file(tmp_path: Path) -> None:
    assert median_sync_ns(tmp_path) > 0
    assert not list(tmp_path.iterdir())


def test_an_unknown_library_is_none() -> None:
    assert read_library("libno-such-sqlite.so") is None
