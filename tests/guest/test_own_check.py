"""Programs that a check of their own judges after power cuts: nothing is found where all is synced,
planted faults are found, and a check that cannot be right is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.places import EXPERIMENTS
from jojlab.lab.lab import Lab

STATES = 24
SOUND, NO_FILE = "records", "records-without-file-sync"
REPLACE, NO_CONTENT = "replace", "new-names-without-file-sync"


def answers(lab: Lab, name: str, *settings: str) -> dict[str, Any]:
    """Return what power cuts leave of the cases of an experiment; why not, where there is no
    answer.
    """
    planned = plan(read(find(name), settings))
    campaign = Campaign(planned, images_of(planned, lab.cache), lab)
    found = campaign.power_cut_answers(STATES, RunProgress())
    return {step.case_id: answer or step.failure for step, answer in found}


@pytest.mark.full  # test_omitted_sync.py plants one of them more cheaply
@pytest.mark.parametrize(
    ("sound", "faulty", "outcome"),
    [(SOUND, NO_FILE, "lost"), (REPLACE, NO_CONTENT, "corrupt")],
)
def test_planted_faults_of_programs_are_found_and_nothing_else(
    lab: Lab, sound: str, faulty: str, outcome: str
) -> None:
    chosen = f"variant={sound},{faulty}"
    found = answers(lab, str(EXPERIMENTS / "own-engine"), "filesystem=ext4", chosen)
    outcomes = {name: answer["outcomes"] for name, answer in found.items()}
    assert set(outcomes[sound]) == {"kept"}, outcomes
    assert outcomes[faulty][outcome] > 2, outcomes
    lost = [it for it in found[faulty]["states"] if it["outcome"] == "lost"]
    assert all("acknowledged records, first" in state["message"] for state in lost)
    # A record is lost only where it was acknowledged before the cut.
    assert all(state["acknowledged"] > 0 for state in lost)
    assert not any(answer["unchecked"] for answer in found.values())


CASE = """
question = "What does a check see?"
[case]
workload = "program"
program  = "./app.py"
check    = "./check.py"
"""
# Acknowledges before it syncs, and so promises too early; prints through its standard output.
APP = """#!/usr/bin/python3 -IS
import os
for number in range(6):
    file = os.open(f"file-{number}", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x" * 5000)
    print(number, flush=True)
    os.fsync(file)
"""
CHECK = """#!/usr/bin/python3 -IS
import os, sys
acked = [int(line) for line in open(os.environ["JOJ_ACKED"])]
there = [name for name in os.listdir(".") if name.startswith("file")]
print(len(there), "of", len(acked))
try:
    os.mknod("/device")
    sys.exit("not confined")
except OSError:
    pass
sys.exit(%s)
"""


def own(folder: Path, verdict: str) -> str:
    """An experiment of the program, whose check ends by an expression."""
    for name, text in (("app.py", APP), ("check.py", CHECK % verdict)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "experiment.toml").write_text(CASE)
    return str(folder / "experiment.toml")


@pytest.mark.full
def test_a_promise_that_comes_before_its_sync_is_lost(lab: Lab, tmp_path: Path) -> None:
    name = own(tmp_path, 'int(any(f"file-{number}" not in there for number in acked))')
    [answer] = answers(lab, name, "acks=stdout").values()
    assert answer["outcomes"]["lost"] > 2, answer["outcomes"]
    # A torn superblock of ext4 stops the mount (docs/findings).
    assert set(answer["outcomes"]) <= {"kept", "lost", "unmountable"}


@pytest.mark.full
def test_a_program_that_acknowledges_nothing_is_judged_for_soundness_alone(
    lab: Lab, tmp_path: Path
) -> None:
    [answer] = answers(lab, own(tmp_path, "3 if len(there) == 3 else 0")).values()
    assert "acknowledged nothing" in answer["unchecked"][0]
    broken = [state for state in answer["states"] if state["outcome"] == "corrupt"]
    assert broken
    assert all("cannot be read (exit code 3): 3 of 0" in state["message"] for state in broken)


# In WAL mode with NORMAL no commit is synced. It ends without closing, so that nothing is copied.
UNSYNCED = """#!/usr/bin/python3 -I
import os, sqlite3
base = sqlite3.connect("app.db", isolation_level=None)
base.execute("PRAGMA journal_mode = %s").fetchone()
base.execute("PRAGMA synchronous = %s")
base.execute("CREATE TABLE record(number, value)")
for number in range(8):
    base.execute("INSERT INTO record VALUES (?, ?)", (number, "x" * 300))
    with open(f"note-{number}", "w") as note:
        os.fsync(note.fileno())
os._exit(0)
"""


def test_the_rows_of_a_program_s_database_are_compared_with_those_after_each_commit(
    lab: Lab, tmp_path: Path
) -> None:
    name = own(tmp_path, "0")
    (tmp_path / "experiment.toml").write_text(CASE.replace("./check.py", "sqlite"))
    for mode, synchronous in (("wal", "normal"), ("truncate", "full")):
        (tmp_path / "app.py").write_text(UNSYNCED % (mode, synchronous))
        [answer] = answers(lab, name, "filesystem=ext4").values()
        assert answer["unchecked"] == ["files that are no SQLite database"]
        last = max(state["acknowledged"] for state in answer["states"])
        lost = [it for it in answer["states"] if it["outcome"] == "lost"]
        if mode == "truncate":
            assert set(answer["outcomes"]) <= {"kept", "unmountable"}, answer["outcomes"]
        else:
            # Before the last commit had returned too, of which alone the end tells the rows.
            assert any(it["acknowledged"] < last and it["lost"] > 0 for it in lost), answer[
                "states"
            ]


# While its folder has the name of the file that is made after each cut, nobody can go on there.
STUCK = """#!/usr/bin/python3 -IS
import os
root = os.open(".", os.O_RDONLY)
for number in range(4):
    os.mkdir("joj-next-file")
    os.fsync(root)
    print(2 * number, flush=True)
    os.rmdir("joj-next-file")
    os.fsync(root)
    print(2 * number + 1, flush=True)
%s
"""


@pytest.mark.full
@pytest.mark.parametrize("remains", [False, True])
def test_a_program_that_cannot_go_on_after_a_cut_is_harmed(
    lab: Lab, tmp_path: Path, *, remains: bool
) -> None:
    name = own(tmp_path, "0")
    (tmp_path / "app.py").write_text(STUCK % ('os.mkdir("joj-next-file")' if remains else ""))
    [answer] = answers(lab, name, "acks=stdout", "filesystem=ext4").values()
    stuck = [it for it in answer["states"] if "cannot go on: write and sync" in it["message"]]
    if remains:
        assert not stuck
        assert answer["unchecked"][0].startswith("whether one can go on: without a power cut")
    else:
        assert len(stuck) > 2
        assert all(it["outcome"] == "corrupt" for it in stuck)
        assert not answer["unchecked"]
        assert answer["outcomes"]["kept"] > 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("2", "unmounted and mounted again"),
        pytest.param("0 if there else 1", "before the program began", id="empty"),
    ],
)
def test_a_check_that_does_not_pass_without_a_cut_is_refused(
    lab: Lab, tmp_path: Path, verdict: str, words: str
) -> None:
    [failure] = answers(lab, own(tmp_path, verdict), "acks=stdout").values()
    assert "the check does not pass on" in failure
    assert words in failure
