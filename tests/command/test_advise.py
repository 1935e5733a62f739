"""joj advise with real guests: how many states an answer is tested by, and what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.command.conftest import JOJ, Lab, read_until
from tests.hangs import await_end

# Short runs, of which SQLite's sync call may be chosen.
NAMED = (
    "synchronous=full", "page_size_bytes=4096", "locking_mode=normal", "journal_mode=wal",
    "wal_autocheckpoint_pages=1000", "mkfs_options=", "mount_options=noatime",
)  # fmt: skip
ASKED = ("advise", "--jobs=1", "--answers=1", "--set=regime=steady", "--fixed=filesystem=ext4")
OF_SYNC_CALL = (*ASKED, *(f"--fixed={each}" for each in NAMED))


@pytest.mark.full
def test_a_run_with_too_few_states_is_made_longer(lab: Lab) -> None:
    answer = lab.joj(*OF_SYNC_CALL, "--set=transactions=1", "--states=100", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    [first] = found["answers"]
    assert first["changed"] == {"sync_call": {"old": "fsync", "new": "fdatasync"}}
    regime, told = first["tested"].split(": ")
    judged, length = told.split(" distinct states of a run of ")
    assert regime == "steady"
    assert int(judged) == sum(first["durability"]["steady"].values()) >= 100
    # How many states a transaction has depends on the kernel.
    runs = 1 + answer.stderr.count("more states where there were too few: 1 run")
    transactions = int(length.split()[0])
    assert runs == 1 + (transactions > 1) + (transactions > 3)
    assert found["present"]["tested"].endswith(" distinct states of a run of 1 transaction")


@pytest.mark.full
def test_user_mode_linux_judges_where_it_is_asked_to(lab: Lab) -> None:
    options = ("--set=transactions=3", "--states=20", "--native", "--json")
    answer = lab.joj(*OF_SYNC_CALL, *options)
    assert answer.returncode == 0, answer.stderr
    [first] = json.loads(answer.stdout)["answers"]
    count = sum(first["durability"]["steady"].values())
    assert count >= 20
    assert f"(User Mode Linux judged all {count} states)" in first["tested"]


def test_advice_without_power_cuts_says_so(lab: Lab) -> None:
    answer = lab.joj(*OF_SYNC_CALL, "--set=transactions=1", "--states=0")
    assert answer.returncode == 0, answer.stderr
    assert "no power is cut (--states 0)" in answer.stderr
    assert "no power cut was asked for: that answers keep the guarantee" in answer.stdout
    assert "nothing lost" not in answer.stdout
    assert "tested:" not in answer.stdout


@pytest.mark.full
def test_an_app_that_no_power_cut_can_judge_ends_the_search(lab: Lab) -> None:
    """A trigger writes something else in a second run, with all settings."""
    app = lab.folder / "app"
    app.mkdir()
    (app / "schema.sql").write_text(
        "CREATE TABLE t (x);\nCREATE TABLE log (at);\nCREATE TRIGGER a AFTER INSERT ON t BEGIN\n"
        "INSERT INTO log VALUES (strftime('%f', 'now'));\nEND;\n"
    )
    (app / "transaction.sql").write_text("INSERT INTO t VALUES (:int(1,9));\n")
    answer = lab.joj(*ASKED, "--set=workload=sql", "--set=scripts=app", "--set=transactions=3")
    said = " ".join(answer.stderr.split())
    assert answer.returncode == 2, said
    assert "no power cut can test the app as it is now" in said
    assert "use random() or the time of day" in said
    assert "schema.sql:3: CREATE TRIGGER" in said
    assert "round 1" not in said


def test_ctrl_c_on_a_terminal_shows_the_round_and_what_was_found(lab: Lab) -> None:
    terminal, ours = os.openpty()
    # Progress is one line of a case each where stderr is no terminal.
    with subprocess.Popen(
        ["setsid", "--ctty", *JOJ, *ASKED, "--set=journal_mode=wal", "--set=transactions=3"],
        cwd=lab.folder, env=lab.environment({"COLUMNS": "200"}), stdin=ours, stdout=ours,
        stderr=subprocess.PIPE, text=True,
    ) as joj:  # fmt: skip
        os.close(ours)
        # Two of more than ten settings have figures.
        said = read_until("round 1, ", joj) + read_until("[2/", joj)
        os.write(terminal, b"\x03")
        _, rest = await_end(joj)
    shown = _all_of(terminal)
    assert joj.returncode == 130, said + rest
    assert "interrupted; not finished: round 1, " in rest
    assert "what was measured is in the cache" in rest
    assert "the same command goes on from there" in rest
    assert "Traceback" not in rest
    assert "cheapest so far" in shown
    assert "not tested yet" in shown
    assert "PRAGMA synchronous = FULL;" in shown
    assert lab.guests() == []
    assert list((lab.cache / "work").iterdir()) == []


def _all_of(terminal: int) -> str:
    """Return what a terminal shows whose other end is closed, and close it."""
    found = b""
    try:
        while part := os.read(terminal, 65536):
            found += part
    except OSError:  # EIO: nobody can write any more (pty(7))
        pass
    os.close(terminal)
    return found.decode()
