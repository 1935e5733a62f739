from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from jojlab.inspection.storage import BlockDevice, Mount
from jojlab.inspection.target import Target
from jojlab.report import inspection
from tests.inside import joj


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "app.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE phone_book (name)")
    return path


def test_the_answer_comes_first_and_fits(database: Path) -> None:
    answer = joj("inspect", str(database), folder=database.parent)
    assert answer.returncode == 0
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("app.db is a database of SQLite, journal mode WAL, on ")
    assert lines.index("") <= 6
    assert max(len(line) for line in lines) <= 100


def test_json_has_the_same_answer(database: Path) -> None:
    text = joj("inspect", str(database), folder=database.parent).stdout
    document = json.loads(joj("inspect", str(database), "--json", folder=database.parent).stdout)
    assert document["database"]["journal_mode"] == "wal"
    assert document["in_short"][0] in text


def target(database: Path, *options: str, sync_ns: int | None = None) -> Target:
    device = BlockDevice("mmcblk0", True, True, False, 512, 0, 0, None, ())
    mount = Mount(database.parent, "ext4", "/dev/mmcblk0p1", options, (179, 1))
    return Target(database, None, mount, device, None, sync_ns)


def test_mount_options_that_risk_data_are_named(database: Path) -> None:
    facts = list(inspection.facts(target(database, "rw", "data=writeback", "nobarrier")))
    risks = [fact.value for fact in facts if fact.name == "at risk"]
    assert any("data=writeback" in risk for risk in risks)
    assert any("nobarrier" in risk for risk in risks)


@pytest.mark.parametrize(("sync_ns", "is_suspect"), [(40_000, True), (900_000, False)])
def test_a_sync_that_is_too_fast_is_a_suspicion(
    database: Path, sync_ns: int, is_suspect: bool
) -> None:
    *_, fact = inspection.facts(target(database, sync_ns=sync_ns))
    assert fact.name == "sync"
    assert fact.meaning.startswith("suspicion") == is_suspect
