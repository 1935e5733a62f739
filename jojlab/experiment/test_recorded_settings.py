from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.experiment.recorded_settings import with_recorded
from jojlab.foundation.errors import UseError
from jojlab.recording import sql_settings
from jojlab.recording.sql_settings import ConnectionSettings


def test_settings_of_the_folder_are_taken_where_no_option_is_given(tmp_path: Path) -> None:
    own = ConnectionSettings("a.db", ["SECURE_DELETE"], was_there=False, commits=3)
    for words in (["main", ".", "journal_mode", "=", "WAL"], ["synchronous", "(", "1", ")"]):
        own.note(words)
    text = "\n".join(sql_settings.lines([own]))
    (tmp_path / sql_settings.NAME).write_text(text)
    given = {"workload": "sql-recorded", "scripts": str(tmp_path)}
    fields, note = with_recorded({**given, "synchronous": "full", "device": "galaxy-s3"})
    assert fields == {
        **given, "device": "galaxy-s3", "synchronous": "full", "journal_mode": "wal",
        "page_size_bytes": 4096, "auto_vacuum": "none", "locking_mode": "normal",
        "secure_delete": "on", "temp_store": "default", "wal_autocheckpoint_pages": 1000,
    }  # fmt: skip
    assert "journal_mode=wal" in note
    assert note.endswith("; by option, in the place of the recorded ones: synchronous=full")
    assert with_recorded({**given, "workload": "sqlite-insert"})[1] == ""


def test_connections_that_differ_are_said_to(tmp_path: Path) -> None:
    connections = [
        ConnectionSettings("a.db", [], was_there=True, own={"synchronous": "off"}, commits=9),
        ConnectionSettings("a.db", ["DEFAULT_SYNCHRONOUS=1"], was_there=True, commits=2),
    ]
    lines = list(sql_settings.lines(connections))
    assert 'synchronous = "off"  # PRAGMA synchronous; others had normal' in lines
    assert "# journal_mode: not known: the database was there before" in lines


@pytest.mark.parametrize("line", ['device = "x"', 'journal_mode = "no"', "journal_mode ="])
def test_a_stranger_sets_nothing_else(tmp_path: Path, line: str) -> None:
    (tmp_path / "settings.toml").write_text(line)
    with pytest.raises(UseError, match=r"settings\.toml"):
        with_recorded({"workload": "sql-recorded", "scripts": str(tmp_path)})
