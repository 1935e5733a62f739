"""Folders that hold no SQLite that the agent can be linked to: each is refused with what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.image.own_sqlite import OPTIONS, agent_with_sqlite, refuse_older

NEW = '/* SQLite */\n#define SQLITE_VERSION        "3.40.1"\n'


@pytest.mark.parametrize(
    ("files", "words", "remedy"),
    [
        ({}, "there is no sqlite3.c", "amalgamation"),
        ({"sqlite3.c": NEW}, "there is no sqlite3.h", "amalgamation"),
        ({"sqlite3.c": "int main;", "sqlite3.h": ""}, "no amalgamation of SQLite", "sqlite.org"),
        (
            {"sqlite3.c": '#define SQLITE_VERSION "3.7.16"\n', "sqlite3.h": ""},
            "SQLite 3.7.16 is older than",
            "workload = program",
        ),
        (
            {"sqlite3.c": NEW, "sqlite3.h": "", OPTIONS: "# ours\n\nSQLITE_DQS=0; rm\n"},
            f"{OPTIONS}, line 3: 'SQLITE_DQS=0; rm' is no option",
            "one a line",
        ),
        (
            {"sqlite3.c": NEW, "sqlite3.h": "", OPTIONS: "-DHAVE_FDATASYNC=1\n"},
            "the field sync_call says by which call",
            "set sync_call",
        ),
    ],
)
def test_a_folder_without_a_sqlite_to_link_is_refused(
    tmp_path: Path, files: dict[str, str], words: str, remedy: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UseError) as refused:
        agent_with_sqlite(Cache(tmp_path / "cache"), tmp_path)
    assert words in refused.value.message
    assert remedy in (refused.value.remedy or "")


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("checkpoint_mode", "truncate", "SQLITE_CHECKPOINT_TRUNCATE"),
        ("batch_atomic_write", "on", "SQLITE_IOCAP_BATCH_ATOMIC"),
        ("wal_prefill_bytes", 65536, "SQLITE_FCNTL_JOURNAL_POINTER"),
        ("checkpoint_when_closed", "off", "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"),
        ("vfs", "redo", "SQLITE_IOCAP_BATCH_ATOMIC"),
    ],
)
def test_field_that_an_older_sqlite_does_not_heed_is_refused(
    tmp_path: Path, field: str, value: str | int, name: str
) -> None:
    plain: dict[str, str | int] = {
        "checkpoint_mode": "restart",
        "batch_atomic_write": "off",
        "wal_prefill_bytes": 0,
        "checkpoint_when_closed": "on",
        "vfs": "none",
    }
    (tmp_path / "sqlite3.c").write_text('#define SQLITE_VERSION "3.8.5"\n')
    (tmp_path / "sqlite3.h").write_text("")
    assert refuse_older(tmp_path, plain) == ""
    refused = refuse_older(tmp_path, {**plain, field: value})
    assert refused.startswith(f"{field} = {value}: SQLite 3.8.5 of {tmp_path}")
    assert refused.endswith(name)
    (tmp_path / "sqlite3.h").write_text(f"#define {name} 3\n")
    assert refuse_older(tmp_path, {**plain, field: value}) == ""
