from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from jojlab.commands import machine
from jojlab.inspection.database import read_database
from jojlab.inspection.storage import BlockDevice, Mount
from jojlab.inspection.target import Target
from jojlab.report import inspection
from tests.this_process import joj


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


def test_no_line_is_wider_than_the_terminal(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "terminal", lambda: Console(width=80))
    answer = joj("inspect", str(database), folder=database.parent)
    assert max(len(line) for line in answer.stdout.splitlines()) <= 80


def test_a_database_below_an_overlay_is_called_so(database: Path) -> None:
    found = target(database)
    lines = inspection.answer(replace(found, mount=replace(found.mount, is_upper=True)))
    assert lines[0].startswith("app.db is on ext4 (/dev/mmcblk0p1), below an overlay; ")


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


def test_each_risk_has_its_page_and_the_command_that_measures_it(database: Path) -> None:
    facts = list(inspection.facts(target(database, "rw", "data=writeback", "nobarrier")))
    risks = {fact.meaning for fact in facts if fact.name == "at risk"}
    assert {"see docs/findings/ext4-data-writeback.md", "see docs/power-cuts.md"} <= risks
    commands = {fact.command for fact in facts if fact.name == "at risk"}
    assert commands == {"joj bill --like FILE --durability"}


def test_mount_options_that_cost_are_explained(database: Path) -> None:
    found = target(database, "rw", "commit=60", "discard")
    [fact] = [fact for fact in inspection.facts(found) if fact.name == "mount options"]
    assert fact.value == "rw, commit=60, discard"
    assert fact.meaning.startswith("commit=60: seconds until the filesystem commits by itself")
    assert "; discard: the device is told of freed blocks" in fact.meaning


def test_a_sync_without_a_flush_is_no_suspicion_of_the_device(database: Path) -> None:
    found = target(database, "rw", "nobarrier", sync_ns=40_000)
    assert inspection.answer(found)[1] == (
        "mmcblk0 has a volatile cache, and with nobarrier no flush is sent to it."
    )
    *_, fact = inspection.facts(found)
    assert fact.meaning.endswith("which sends no flush with nobarrier")


def test_the_mark_of_an_app_is_named(database: Path) -> None:
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("PRAGMA application_id = 252006673")
        connection.execute("PRAGMA wal_checkpoint")
    found = replace(target(database), database=read_database(database))
    [fact] = [fact for fact in inspection.facts(found) if fact.name == "application_id"]
    assert fact.value == "252006673 (0x0f055111)"


@pytest.mark.parametrize(
    ("has_cache", "meaning"),
    [(True, "is lost with the power"), (False, "needs no flush"), (None, "")],
)
def test_a_cache_is_explained(database: Path, has_cache: bool | None, meaning: str) -> None:
    found = target(database)
    assert found.device
    device = replace(found.device, write_cache=has_cache)
    facts = inspection.facts(replace(found, device=device))
    [fact] = [fact for fact in facts if fact.name == "volatile cache"]
    assert fact.meaning.endswith(meaning)
    assert bool(fact.meaning) == bool(meaning)


def test_a_loop_device_has_its_file_below(database: Path) -> None:
    found = target(database)
    assert found.device
    loop = replace(found.device, name="loop0", below=("/var/app.img",))
    [fact] = [f for f in inspection.facts(replace(found, device=loop)) if f.name == "made of"]
    assert (fact.value, fact.meaning) == ("/var/app.img", "a flush is an fsync of it")


@pytest.mark.parametrize(("sync_ns", "is_suspect"), [(40_000, True), (900_000, False)])
def test_a_sync_that_is_too_fast_is_a_suspicion(
    database: Path, sync_ns: int, is_suspect: bool
) -> None:
    *_, fact = inspection.facts(target(database, sync_ns=sync_ns))
    assert fact.name == "sync"
    assert fact.meaning.startswith("suspicion") == is_suspect


def test_a_folder_has_its_databases_a_line_each_below_the_answer(database: Path) -> None:
    folder = database.parent / "data\nof an app"
    folder.mkdir()
    for name, page_bytes in (("a.db", 4096), ("b", 65536)):
        with sqlite3.connect(folder / name, isolation_level=None) as connection:
            connection.execute(f"PRAGMA page_size = {page_bytes}")
            connection.execute("CREATE TABLE phone_book (name)")
    (folder / "link").symlink_to(database)
    answer = joj("inspect", str(folder), folder=folder)
    assert answer.returncode == 0
    lines = answer.stdout.splitlines()
    assert lines[0].startswith("data␊of an app is a folder on ")
    assert lines[0].endswith(": 2 databases of SQLite (136 KiB) in 2 files.")
    assert lines[1] == "Journal: 2 no file. Pages of 4 KiB (1), 64 KiB (1)."
    assert lines[2] == "Not read: 1 link."
    assert lines.index("") <= 6
    assert [line.split()[-1] for line in lines if line.startswith("no file")] == ["a.db", "b"]
    assert any(line.startswith("DELETE, MEMORY or OFF 2 databases: no journal") for line in lines)
    assert max(len(line) for line in lines) <= 100
    document = json.loads(joj("inspect", str(folder), "--json", folder=folder).stdout)
    assert document["in_short"] == lines[: lines.index("")]
    assert [each["page_bytes"] for each in document["folder"]["databases"]] == [4096, 65536]


def test_delete_is_not_taken_for_granted_where_memory_and_off_look_alike(database: Path) -> None:
    """Databases of the three modes leave the same files, and two of them break in a crash."""
    path = database.with_name("none.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE phone_book (name)")
    lines = inspection.answer(replace(target(path), database=read_database(path)))
    assert lines[2:5] == (
        "If DELETE, synchronous FULL: a power cut may take last commits (below).",
        "If DELETE, synchronous NORMAL: a power cut may take database (below).",
        "If MEMORY or OFF, a power cut or a crash of the app may take database.",
    )


def test_a_database_in_memory_has_no_line_of_power_cuts(database: Path) -> None:
    mount = Mount(Path("/dev/shm"), "tmpfs", "tmpfs", ("rw",), (0, 31))
    lines = inspection.answer(replace(target(database), mount=mount))
    assert lines[1:] == ("It is in memory: nothing there survives the end of power.",)


def test_a_transaction_that_was_left_is_in_the_answer(database: Path) -> None:
    path = database.with_name("hot.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE phone_book (name)")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO phone_book VALUES (?)", [("x" * 4000,)] * 50)
    lines = inspection.answer(replace(target(path), database=read_database(path)))
    connection.close()
    assert lines[1].startswith("A transaction's journal lies beside it: in use, or of a crash")
    assert len(lines) <= 6
    assert len(lines[1]) <= 100


@pytest.mark.parametrize(("wear", "is_told"), [("life_time 0x00 0x02", True), (None, False)])
def test_the_wear_of_a_device_is_told_with_its_scale(
    database: Path, wear: str | None, is_told: bool
) -> None:
    found = target(database)
    assert found.device
    worn = replace(found, device=replace(found.device, wear=wear))
    [fact] = [fact for fact in inspection.facts(worn) if fact.name == "wear"]
    assert fact.value == (wear or "not told by /sys; a drive of NVMe tells it to nvme-cli")
    assert ("0x00 says nothing" in fact.meaning) == is_told
