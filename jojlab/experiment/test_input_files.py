"""The files that an experiment names: beneath its folder, or the user's own word."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, read
from jojlab.foundation.errors import UseError

CASE = 'question = "?"\n[case]\nworkload = "replay"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment's folder with a script, and one beside it."""
    for place in ("own/scripts", "other"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "script").write_text("1 0 close 3\n")
    return tmp_path / "own"


def asked(folder: Path, text: str, *settings: str) -> Experiment:
    (folder / "experiment.toml").write_text(text)
    return plan(read(folder / "experiment.toml", settings)).experiment


def test_a_script_lies_beneath_the_experiment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    [case] = asked(folder, CASE + 'script = "scripts/script"\n').cases
    assert case.inputs == {"script": folder / "scripts/script"}
    assert case.settings["script"] == "scripts/script"
    # It is what it is: nothing of it is drawn or counted.
    assert not {"transactions", "duration_ms", "warmup_transactions"} & case.settings.keys()


def test_on_the_command_line_it_may_lie_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    [case] = asked(folder, CASE, "script=../other/script").cases
    assert case.inputs["script"].samefile(folder.parent / "other/script")
    two = asked(folder, CASE, "script=scripts/script,../other/script").cases
    assert len({case.inputs["script"] for case in two}) == 2


def test_a_recording_takes_the_place_of_the_file_s_script(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "recording").mkdir()
    rows = [{"key": "recording_version", "value": "1"}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "recording/manifest.parquet")
    text = 'question = "?"\n[case]\nworkload = "replay"\n[matrix]\nscript = ["a", "b"]\n'
    [case] = asked(folder, text, "recording=recording").cases
    assert case.inputs == {"recording": folder / "recording"}
    assert case.settings["script"] == ""


@pytest.mark.parametrize("script", ["/etc/passwd", "../other/script", "scripts/../../other/script"])
@pytest.mark.parametrize(
    "text",
    [
        '[case]\nscript = "{}"\n',
        '[matrix]\nscript = ["{}"]\n',
        '[[variant]]\nname="a"\nscript = "{}"\n',
    ],
)
def test_a_path_that_leads_out_is_refused(folder: Path, text: str, script: str) -> None:
    with pytest.raises(UseError, match=r"experiment\.toml.*script.*not beneath"):
        asked(folder, 'question = "?"\n' + text.format(script))


def test_so_is_a_link_that_does(folder: Path) -> None:
    (folder / "scripts/link").symlink_to(folder.parent / "other/script")
    (folder / "out").symlink_to(folder.parent / "other")
    for script in ("scripts/link", "out/script"):
        with pytest.raises(UseError, match="not beneath the experiment's folder"):
            asked(folder, CASE + f'script = "{script}"\n')
    (folder / "within").symlink_to(folder / "scripts")
    assert asked(folder, CASE + 'script = "within/script"\n').cases


@pytest.mark.parametrize("script", ["scripts", "nothing"])
def test_what_is_no_file_is_told(folder: Path, script: str) -> None:
    with pytest.raises(UseError, match=f"{script} is no file"):
        asked(folder, CASE + f'script = "{script}"\n')


def test_a_replay_needs_a_script_and_others_have_none(folder: Path) -> None:
    with pytest.raises(UseError, match="replay needs recording"):
        asked(folder, CASE)
    with pytest.raises(UseError, match="sqlite-insert has no field script"):
        asked(folder, 'question = "?"\n[case]\nscript = "scripts/script"\n')
    with pytest.raises(UseError, match="replay has no field transactions"):
        asked(folder, CASE + 'script = "scripts/script"\ntransactions = 3\n')


PROGRAM = 'question = "?"\n[case]\nworkload = "program"\n'


def test_an_unknown_program_is_told_with_file_and_field(folder: Path) -> None:
    with pytest.raises(UseError, match=r"experiment\.toml: program = no-such-app: no such program"):
        asked(folder, PROGRAM + 'program = "no-such-app"\n')
    with pytest.raises(UseError, match="needs program = NAME"):
        asked(folder, PROGRAM)


def test_other_programs_are_the_systems_but_on_the_command_line(folder: Path) -> None:
    text = PROGRAM + 'program = "sh"\n'
    for other in ("/home/other/app", "../app", "cat ./app"):
        with pytest.raises(UseError, match=r"other_programs.*none of the system's programs"):
            asked(folder, text + f'other_programs = "{other}"\n')
    [case] = asked(folder, text, "other_programs=cat ../app").cases
    assert case.settings["other_programs"] == "cat ../app"


@pytest.mark.parametrize("environment", ["FOO", "A=1 FOO", "=1"])
def test_a_variable_has_a_name_and_a_value(folder: Path, environment: str) -> None:
    text = PROGRAM + 'program = "sh"\n'
    with pytest.raises(UseError, match=r"environment: '.*' is no variable"):
        asked(folder, text + f'environment = "{environment}"\n')
    with pytest.raises(UseError, match=r"environment: '.*' is no variable"):
        asked(folder, text, f"environment={environment}")


def test_a_list_of_arguments_is_written_as_one_text(folder: Path) -> None:
    with pytest.raises(UseError, match=r"arguments has several values[^$]*as in a shell"):
        asked(folder, PROGRAM + 'program = "sh"\narguments = ["a", "b"]\n')
