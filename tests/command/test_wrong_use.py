"""Tests what joj says to input it cannot take: exit code 2, the place, the nearest known name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command.conftest import SMALL, Lab

QUESTION = 'question = "What?"\n'
JUDGE, OWN = ("verify", "durability"), ("--program", "sh", "--check", "sh")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "first-lok"], "did you mean 'first-look'"),
        (["run", "/"], "no such experiment"),
        (["run", "first-look", "--set", "filesistem=ext4"], "did you mean 'filesystem'"),
        (["run", "first-look", "--set", "filesystem=ext5"], "did you mean 'ext4'"),
        (["run", "first-look", "--set", "filesystem"], "--set KEY=VALUE"),
        (["run", "first-look", "--set", "transactions=many"], "must be a whole number"),
        (["run", "first-look", "--set", "transactions=0"], "allowed: 1 to"),
        (["run", "first-look", "--set", "filesystem=ext4,ext4"], "twice"),
        (["run", "first-look", "--set", "device=nokia"], "known: emmc-5.1, emmc-galaxy-s3"),
        (["run", "first-look", "--jobs", "0"], "--jobs"),
        (["bill", "--journal-mode", "truncat"], "did you mean 'truncate'"),
        (["bill", "--filesistem", "ext4"], "--filesystem"),
        (["bill", "--page-size-bytes", "1000"], "power of two"),
        (["bill", "--seed", "99999999999999999999"], "--seed"),
        (["show", "nowhere"], "nowhere: no such folder"),
        (["show", "."], "not a run"),
        (["diff", "nowhere", "nowhere"], "no such folder"),
        (["device", "show", "./nowhere"], "nowhere does not exist"),
        ([*JUDGE, *OWN, "--faults", "short-write"], "--faults short-write: no such error"),
        ([*JUDGE, "write-fsync", "--faults", "no-space"], "no error is planted beneath file-wri"),
        ([*JUDGE, *OWN, "--faults", "no-space", "--without-sync"], "are runs of their own"),
        ([*JUDGE, "--faults", "no-space", "--set", "filesystem=nilfs2"], "allocates nothing in"),
        ([*JUDGE, "--faults", "no-space", "--native"], "what errors leave is judged in the guest"),
        ([*JUDGE, "first-look", "--generate", "3"], "takes --set and no experiment or program"),
        ([*JUDGE, "--generate", "3", "--set", "filesystem=fat"], "filesystem cannot be 'fat'"),
        # Who names nothing gets the experiment power-cut.
        ([*JUDGE, "--set", "filesystem=fat"], "filesystem cannot be 'fat'"),
        (["trace", "--duration", "-1"], "--duration"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_use_is_refused_with_a_remedy(lab: Lab, arguments: list[str], words: str) -> None:
    answer = lab.joj_here(*arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert answer.stdout == ""
    assert list(lab.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (QUESTION + '[matrix]\nfilesystm = ["ext4"]', "did you mean 'filesystem'"),
        (QUESTION + '[matrix]\nfilesystem = ["ext44"]', "did you mean 'ext4'"),
        (QUESTION + "[case]\ntransaction = 3", "did you mean 'transactions'"),
        ("qestion = 'What?'", "did you mean 'question'"),
        (QUESTION + "[matrix", "not TOML"),
    ],
)
def test_an_experiment_file_is_refused_by_its_name(lab: Lab, text: str, words: str) -> None:
    (lab.folder / "mine.toml").write_text(text)
    answer = lab.joj_here("run", "mine.toml")
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "mine.toml" in answer.stderr


def test_a_single_case_that_its_filesystem_cannot_run_is_refused(lab: Lab) -> None:
    answer = lab.joj_here("bill", "--filesystem", "ext4", "--batch-atomic-write", "on")
    assert answer.returncode == 2
    assert "ext4 has no batch atomic write" in answer.stderr


def test_a_run_is_never_written_over(lab: Lab, finished_run: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")}
    answer = lab.joj_here("run", "first-look", *SMALL, "--out", finished_run)
    assert answer.returncode == 2
    assert f"{finished_run}: a run is already there" in answer.stderr
    assert {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")} == before


def test_a_folder_of_other_things_is_left_alone(lab: Lab) -> None:
    mine = lab.folder / "mine"
    mine.mkdir()
    (mine / "experiment.toml").write_text(QUESTION)
    answer = lab.joj_here("run", "first-look", *SMALL, "--out", mine)
    assert answer.returncode == 2
    assert "something else is already there" in answer.stderr
    assert [path.name for path in mine.iterdir()] == ["experiment.toml"]
    assert (mine / "experiment.toml").read_text() == QUESTION
