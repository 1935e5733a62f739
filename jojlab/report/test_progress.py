"""Progress where there is no terminal: a line a case, and what failed."""

from __future__ import annotations

import pytest

from jojlab.campaign.jobs import Step
from jojlab.report.progress import run_progress


def test_every_case_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress("What?", 3) as watcher:
        watcher.stage("ext4-wal", 1, "snapshot")
        watcher.stage("ext4-wal", 1, "run")
        watcher.stage("ext4-wal", 1, "done")
        watcher.again(Step("ext4-wal", 1, failure="it [died]"))
        watcher.note_finished(Step("ext4-wal", 1))
        watcher.note_finished(Step("ext4-wal", 2, cached=True))
        watcher.note_finished(Step("f2fs-[wal]", 1, failure="it [hung]"))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[:4] == [
        "What?",
        "ext4-wal, seed 1 is tried again: it [died]",
        "[1/3] ext4-wal, seed 1",
        "[3/3] f2fs-[wal], seed 1 failed: it [hung]",
    ]
    assert lines[4].startswith("2 captures (1 from the cache), 1 failed in ")
    assert len(lines) == 5


def test_a_run_that_is_taken_up_again_goes_on_counting(capsys: pytest.CaptureFixture[str]) -> None:
    with run_progress("What?", 3) as watcher:
        watcher.note_finished(Step("ext4-wal", 1, is_there=True))
        watcher.note_finished(Step("ext4-wal", 2, cached=True))
        watcher.note_finished(Step("ext4-wal", 3))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "[3/3] ext4-wal, seed 3"
    assert lines[2].startswith("3 captures (1 from the cache, 1 there before) in ")


def test_an_interrupted_run_says_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), run_progress("What?", 2) as watcher:
        watcher.stage("a", 1, "run")
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "What?\n"


def test_the_running_cases_are_named() -> None:
    with run_progress("What?", 2) as watcher:
        watcher.stage("a", 1, "snapshot")
        watcher.stage("b", 1, "run")
        assert watcher.bar.tasks[0].description == "a, seed 1 waits for its guest | b, seed 1"
        watcher.stage("a", 1, "run")
        watcher.stage("b", 1, "done")
        assert watcher.bar.tasks[0].description == "a, seed 1"
        watcher.note_finished(Step("a", 1, failure="it died"))
        assert watcher.bar.tasks[0].description == ""
