"""joj run takes an experiment or a program, and makes an experiment of a program."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.command_line.own_program import program_experiment, warn_of_files
from jojlab.model.filesystems import BLOCK_FILESYSTEMS


def test_an_argument_that_is_a_file_here_alone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").touch()
    warn_of_files(["app.py", "new.db", "-x", "print()\n" * 40], "")
    said = capsys.readouterr().err
    assert said.startswith("note: app.py is a file here, and not in the guest: --files DIR")
    assert said.count("note:") == 1
    (tmp_path / "files").mkdir()
    (tmp_path / "files/app.py").touch()
    warn_of_files(["app.py"], "files")
    assert capsys.readouterr().err == ""


def test_a_program_runs_on_every_filesystem_or_on_those_that_are_set() -> None:
    whole = program_experiment(
        "joj run", "sh", ["-c", "echo 'a b'"], {"files": "", "other_programs": "git"}, ()
    )
    assert [case.settings["filesystem"] for case in whole.cases] == list(BLOCK_FILESYSTEMS)
    assert {case.settings["arguments"] for case in whole.cases} == {"""-c 'echo '"'"'a b'"'"''"""}
    assert {case.settings["other_programs"] for case in whole.cases} == {"git"}
    chosen = program_experiment("joj run", "sh", [], {}, ["filesystem=f2fs", "time_limit_ms=7"])
    [case] = chosen.cases
    assert (case.settings["filesystem"], case.settings["time_limit_ms"]) == ("f2fs", 7)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no experiment"),
        (("first-look", "--program", "sh"), "EXPERIMENT and --program"),
        (("first-look", "--argument", "a"), "give --program too"),
        (("--program", "no-such-program"), "no such program"),
        (("--program", "sh", "--files", "/no/such/folder"), "/no/such/folder"),
        (("--program", "sh", "--check", "./no-such-check"), "no-such-check"),
        (("--program", "sh", "--acks", "stderr"), "acks cannot be 'stderr'"),
        (("first-look", "--check", "sh"), "--check: of which program?"),
    ],
)
def test_contradictory_options_of_run_are_refused(arguments: tuple[str, ...], words: str) -> None:
    answer = CliRunner().invoke(app, ["run", *arguments])
    assert answer.exit_code == 2, answer.stdout
    assert words in answer.stderr
