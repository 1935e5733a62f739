"""Errors in the place of power cuts: a sync whose write the disk refuses once, and a filesystem
with little room. Who promises all the same is found, and who stops is not; beneath SQLite in the
agent too, whose transactions go on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jojlab.lab.lab import Lab
from tests.guest.test_omitted_sync import CHECK
from tests.guest.test_own_check import answers
from tests.this_process import joj

CASE = """
question = "What is promised after an error?"
[case]
workload   = "program"
program    = "./app.py"
check      = "./check.py"
filesystem = "ext4"
"""
# A file for each record; what it acknowledges is the file's name. It stops at an error, takes none
# for one, or syncs the same file once more, whose page is clean then.
APP = """#!/usr/bin/python3 -IS
import os, sys
way = sys.argv[1]
for number in range(6):
    name = f"record-{number}"
    try:
        file = os.open(name, os.O_WRONLY | os.O_CREAT)
        os.write(file, b"0" * 200)
        os.fsync(file)
    except OSError as error:
        if way == "stops":
            sys.exit(f"{name}: {error.strerror}")
        if way == "syncs-again":
            os.fsync(file)
    os.write(int(os.environ["JOJ_ACKS"]), name.encode() + b"\\n")
"""
SITE = "fsync record-#"


def experiment(folder: Path, app: str, check: str, case: str = CASE) -> str:
    for name, text in (("app.py", app), ("check.py", check)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "experiment.toml").write_text(case)
    return str(folder / "experiment.toml")


@pytest.mark.full
def test_a_promise_after_a_failed_sync_is_lost_and_a_program_that_stops_keeps_all(
    lab: Lab, tmp_path: Path
) -> None:
    name = experiment(tmp_path, APP, CHECK)
    ways = "arguments=stops,ignores,syncs-again"
    found = answers(lab, name, ways, f"failed_sync={SITE} 3")
    faults = {way: answer["fault"] for way, answer in found.items()}
    assert all(fault["errno"] == 5 for fault in faults.values()), faults
    assert all(fault["acknowledged_before"] == 2 for fault in faults.values()), faults
    stops = found["stops"]
    assert faults["stops"]["ended"] == "exit code 1"
    assert faults["stops"]["last_line"] == "record-2: Input/output error"
    assert (faults["stops"]["acknowledged"], stops["remount"]["outcome"]) == (2, "kept")
    assert set(stops["outcomes"]) <= {"kept", "unmountable"}, stops["outcomes"]
    for way in ("ignores", "syncs-again"):
        assert faults[way]["acknowledged"] == 6
        assert found[way]["remount"]["outcome"] == "lost", found[way]["remount"]
        assert found[way]["remount"]["message"].endswith("not whole: record")
        assert found[way]["outcomes"]["lost"] > 2, found[way]["outcomes"]


@pytest.mark.full
def test_the_command_says_what_was_promised_and_what_of_it_was_kept(tmp_path: Path) -> None:
    name = experiment(tmp_path, APP, CHECK)

    def durability(way: str) -> tuple[int, dict[str, Any]]:
        done = joj(
            *("verify", "durability", name, "--faults", "sync-error,no-space", "--json"),
            *("--set", f"arguments={way}", "--states", "16"),
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    code, answer = durability("stops")
    verdicts = {row["error"]: row["verdict"] for row in answer["faults"]}
    assert verdicts[f"{SITE} 3"] == "kept", verdicts
    assert set(verdicts.values()) <= {"kept", "nothing-failed"}, verdicts
    # Without any error a cut may tear a superblock (docs/findings).
    assert code == int(answer["cases"][0]["proven_unsafe"]), answer["in_short"]
    full = [row for row in answer["faults"] if row["returned"] == "ENOSPC"]
    assert full, answer["faults"]
    assert all(row["last_line"].endswith("No space left on device") for row in full)
    code, answer = durability("ignores")
    assert code == 1
    assert " broke a promise" in answer["in_short"][0]
    broken = {row["error"] for row in answer["faults"] if row["verdict"] == "broken"}
    assert f"{SITE} 3" in broken, answer["in_short"]


SQLITE = """#!/usr/bin/python3 -I
import os, sqlite3, sys
base = sqlite3.connect("app.db", isolation_level=None)
mode = base.execute(f"PRAGMA journal_mode = {sys.argv[1]}").fetchone()[0]
if mode != sys.argv[1]:
    sys.exit(f"the journal mode is {mode}")
base.execute("PRAGMA synchronous = FULL")
base.execute("CREATE TABLE IF NOT EXISTS record(number, value)")
for number in range(10):
    try:
        base.execute("INSERT INTO record VALUES (?, ?)", (number, "x" * 3000))
    except sqlite3.OperationalError as error:
        print(f"record {number}: {error}", flush=True)
        continue
    os.write(int(os.environ["JOJ_ACKS"]), b"%d\\n" % number)
"""
ROWS = """#!/usr/bin/python3 -I
import os, sqlite3, sys
acknowledged = {int(line) for line in open(os.environ["JOJ_ACKED"])}
if not os.path.exists("app.db"):
    sys.exit(int(bool(acknowledged)))
base = sqlite3.connect("app.db")
try:
    verdict = base.execute("PRAGMA integrity_check").fetchall()
except sqlite3.Error as error:
    verdict = error
if verdict != [("ok",)]:
    print(verdict)
    sys.exit(2)
tables = base.execute("SELECT name FROM sqlite_schema").fetchall()
there = {row[0] for row in base.execute("SELECT number FROM record")} if tables else set()
print("missing:", sorted(acknowledged - there))
sys.exit(int(bool(acknowledged - there)))
"""


@pytest.mark.full
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_sqlite_tells_of_both_errors_and_keeps_what_it_acknowledged(
    tmp_path: Path, mode: str
) -> None:
    name = experiment(tmp_path, SQLITE, ROWS)
    done = joj(
        *("verify", "durability", name, "--faults", "sync-error,no-space", "--json"),
        *("--set", f"arguments={mode}", "--states", "16"),
    )
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["faults"]
    # DELETE may lose its last commit without any error: the removal of the journal is not synced.
    fine = {"kept", "nothing-failed", "harm-with-and-without"}
    assert {row["verdict"] for row in rows} <= fine, rows
    assert all(row["mounted_again"] == "kept" for row in rows), rows
    said = [(row["returned"], row["last_line"]) for row in rows if row["last_line"]]
    assert {returned for returned, _ in said} == {"EIO", "ENOSPC"}, said
    words = {"EIO": ("disk I/O error",), "ENOSPC": ("disk is full", "disk I/O error")}
    assert all(any(word in line for word in words[returned]) for returned, line in said), said


# Rows that are changed far apart, so that half of a transaction shows.
UPDATES = """
question = "What does SQLite promise after an error?"
[case]
workload     = "sqlite-update"
key_order    = "random"
initial_rows = 300
statements   = 5
transactions = 23
filesystem   = "ext4"
"""


def sqlite_faults(folder: Path, case: str, *settings: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code, and what came of each error beneath a case of SQLite's."""
    (folder / "experiment.toml").write_text(case)
    done = joj(
        *("verify", "durability", str(folder / "experiment.toml"), "--states", "16", "--json"),
        *("--faults", "sync-error,no-space"),
        *(word for setting in settings for word in ("--set", setting)),
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["faults"]


def test_a_commit_whose_sync_fails_is_counted_and_those_that_follow_are_kept(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "experiment.toml").write_text(UPDATES)
    name = str(tmp_path / "experiment.toml")
    (found,) = answers(lab, name, "failed_sync=fsync main.db 14").values()
    fault = found["fault"]
    assert (fault["kind"], fault["errno"], fault["ended"]) == (
        "sync-error", 5, "1 transaction failed",
    )  # fmt: skip
    assert fault["last_line"].endswith("COMMIT on /mnt/flash/main.db: disk I/O error")
    # 5 of the warm-up, and 23; the fourteenth failed.
    assert (fault["acknowledged_before"], fault["acknowledged"]) == (13, 27)
    assert found["remount"]["outcome"] == "kept", found["remount"]
    assert set(found["outcomes"]) == {"kept"}, found["outcomes"]


@pytest.mark.full
def test_xfs_that_shuts_down_after_a_failed_write_of_its_log_ends_no_case(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "experiment.toml").write_text(UPDATES.replace("ext4", "xfs"))
    name = str(tmp_path / "experiment.toml")
    # The journal's sync writes the log too, as the file grew: stat(2) fails from then on.
    failed_sync = "failed_sync=fsync main.db-journal 42"
    (found,) = answers(lab, name, failed_sync, "journal_mode=truncate").values()
    assert found["fault"]["acknowledged_before"] == found["fault"]["acknowledged"] == 13
    assert found["fault"]["ended"] == "15 transactions failed"
    assert found["remount"]["outcome"] == "kept", found["remount"]


@pytest.mark.full
@pytest.mark.parametrize("mode", ["truncate", "wal"])
def test_rows_of_sqlite_are_kept_after_each_error(tmp_path: Path, mode: str) -> None:
    code, rows = sqlite_faults(tmp_path, UPDATES, f"journal_mode={mode}")
    assert {row["verdict"] for row in rows} <= {"kept", "nothing-failed"}, rows
    assert code == 0
    failed = [row for row in rows if row["returned"] == "EIO"]
    # Where the disk refuses a write of its journal, ext4 takes no more.
    assert any(row["acknowledged"] > row["acknowledged_before"] > 0 for row in failed), rows
    full = [row for row in rows if row["kind"] == "no-space" and row["verdict"] == "kept"]
    assert full, rows
    assert all("failed" in row["returned"] for row in full), full
    assert any("database or disk is full" in row["last_line"] for row in full), full


SCRIPT = """--! repeat 9
BEGIN;
INSERT INTO t (body) VALUES (:text(3000));
UPDATE t SET body = :text(20) WHERE id = 1;
COMMIT;
INSERT INTO t (body) VALUES (:text(900));
--! end
"""


@pytest.mark.full
@pytest.mark.parametrize("workload", ["sql", "sql-recorded"])
def test_scripts_go_on_after_a_transaction_that_failed(tmp_path: Path, workload: str) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "schema.sql").write_text("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);\n")
    (scripts / "transaction.sql").write_text(SCRIPT)
    case = f"""
question = "What do scripts promise after an error?"
[case]
workload   = "{workload}"
scripts    = "scripts"
filesystem = "ext4"
"""
    for mode in ("truncate", "wal"):
        _, rows = sqlite_faults(tmp_path, case, f"journal_mode={mode}")
        assert {row["verdict"] for row in rows} <= {"kept", "nothing-failed"}, rows
        failed = [row for row in rows if row["ended"] == "1 transaction failed"]
        assert failed, rows
        assert all(row["acknowledged"] > 10 for row in failed), failed
        assert any("database or disk is full" in row["last_line"] for row in rows), rows
