"""Tests of the files that a case names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.experiment.input_files import recorded_settings
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, read
from jojlab.foundation.errors import UseError
from jojlab.recording import sql_settings
from jojlab.recording.sql_settings import ConnectionSettings

CASE = 'question = "?"\n[case]\nworkload = "replay"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment's folder with a script, and one beside it."""
    for place in ("own/scripts", "other"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "script").write_text("1 0 close 3\n")
    return tmp_path / "own"


def plan_experiment(folder: Path, text: str, *settings: str) -> Experiment:
    (folder / "experiment.toml").write_text(text)
    return plan(read(folder / "experiment.toml", settings)).experiment


def test_a_script_lies_beneath_the_experiment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    [case] = plan_experiment(folder, CASE + 'recording = "scripts/script"\n').cases
    assert case.inputs == {"recording": folder / "scripts/script"}
    assert case.settings["recording"] == "scripts/script"
    # It is what it is: nothing of it is drawn or counted.
    assert not {"transactions", "duration_ms", "warmup_transactions"} & case.settings.keys()


def test_an_input_of_the_command_line_may_lie_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    [case] = plan_experiment(folder, CASE, "recording=../other/script").cases
    assert case.inputs["recording"].samefile(folder.parent / "other/script")
    two = plan_experiment(folder, CASE, "recording=scripts/script,../other/script").cases
    assert len({case.inputs["recording"] for case in two}) == 2


def test_a_recording_of_the_command_line_replaces_the_scripts_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "recording").mkdir()
    rows = [{"key": "recording_version", "value": "1"}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "recording/manifest.parquet")
    text = 'question = "?"\n[case]\nworkload = "replay"\n[matrix]\nrecording = ["a", "b"]\n'
    [case] = plan_experiment(folder, text, "recording=recording").cases
    assert case.inputs == {"recording": folder / "recording"}


@pytest.mark.parametrize("script", ["/etc/passwd", "../other/script", "scripts/../../other/script"])
@pytest.mark.parametrize(
    "text",
    [
        '[case]\nrecording = "{}"\n',
        '[matrix]\nrecording = ["{}"]\n',
        '[[variant]]\nname="a"\nrecording = "{}"\n',
    ],
)
def test_a_path_that_leads_out_is_refused(folder: Path, text: str, script: str) -> None:
    with pytest.raises(UseError, match=r"experiment\.toml.*recording.*not beneath"):
        plan_experiment(folder, 'question = "?"\n' + text.format(script))


def test_input_link_outside_its_folder_is_refused(folder: Path) -> None:
    (folder / "scripts/link").symlink_to(folder.parent / "other/script")
    (folder / "out").symlink_to(folder.parent / "other")
    for script in ("scripts/link", "out/script"):
        with pytest.raises(UseError, match="not beneath the experiment's folder"):
            plan_experiment(folder, CASE + f'recording = "{script}"\n')
    (folder / "within").symlink_to(folder / "scripts")
    assert plan_experiment(folder, CASE + 'recording = "within/script"\n').cases


def test_a_script_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(UseError, match="nothing is no file or folder"):
        plan_experiment(folder, CASE + 'recording = "nothing"\n')


def test_a_replay_needs_a_script_and_others_have_none(folder: Path) -> None:
    with pytest.raises(UseError, match="replay needs recording"):
        plan_experiment(folder, CASE)
    with pytest.raises(UseError, match="sqlite-insert has no field recording"):
        plan_experiment(folder, 'question = "?"\n[case]\nrecording = "scripts/script"\n')
    with pytest.raises(UseError, match="replay has no field transactions"):
        plan_experiment(folder, CASE + 'recording = "scripts/script"\ntransactions = 3\n')


PROGRAM = 'question = "?"\n[case]\nworkload = "program"\n'


def test_an_unknown_program_is_told_with_file_and_field(folder: Path) -> None:
    with pytest.raises(UseError, match=r"experiment\.toml: program = no-such-app: no such program"):
        plan_experiment(folder, PROGRAM + 'program = "no-such-app"\n')
    with pytest.raises(UseError, match="needs program = NAME"):
        plan_experiment(folder, PROGRAM)


def test_other_programs_are_the_systems_but_on_the_command_line(folder: Path) -> None:
    text = PROGRAM + 'program = "sh"\n'
    for other in ("/home/other/app", "../app", "cat ./app"):
        with pytest.raises(UseError, match=r"other_programs.*none of the system's programs"):
            plan_experiment(folder, text + f'other_programs = "{other}"\n')
    [case] = plan_experiment(folder, text, "other_programs=cat ../app").cases
    assert case.settings["other_programs"] == "cat ../app"


@pytest.mark.parametrize("environment", ["FOO", "A=1 FOO", "=1"])
def test_a_variable_has_a_name_and_a_value(folder: Path, environment: str) -> None:
    text = PROGRAM + 'program = "sh"\n'
    with pytest.raises(UseError, match=r"environment: '.*' is no variable"):
        plan_experiment(folder, text + f'environment = "{environment}"\n')
    with pytest.raises(UseError, match=r"environment: '.*' is no variable"):
        plan_experiment(folder, text, f"environment={environment}")


def test_a_list_of_arguments_is_written_as_one_text(folder: Path) -> None:
    with pytest.raises(UseError, match=r"arguments has several values[^$]*as in a shell"):
        plan_experiment(folder, PROGRAM + 'program = "sh"\narguments = ["a", "b"]\n')


def test_settings_of_the_folder_are_taken_where_no_option_is_given(tmp_path: Path) -> None:
    own = ConnectionSettings("a.db", ["SECURE_DELETE"], was_there=False, commits=3)
    for words in (["main", ".", "journal_mode", "=", "WAL"], ["synchronous", "(", "1", ")"]):
        own.note(words)
    text = "\n".join(sql_settings.lines([own]))
    (tmp_path / sql_settings.NAME).write_text(text)
    given = {"workload": "sql-recorded", "scripts": str(tmp_path)}
    fields, note = recorded_settings({**given, "synchronous": "full", "device": "galaxy-s3"})
    assert fields == {
        "journal_mode": "wal", "page_size_bytes": 4096, "auto_vacuum": "none",
        "locking_mode": "normal", "secure_delete": "on", "temp_store": "default",
        "wal_autocheckpoint_pages": 1000,
    }  # fmt: skip
    assert "journal_mode=wal" in note
    assert "; sync_call is not recorded: fsync is taken" in note
    assert note.endswith("; by option, in the place of the recorded ones: synchronous=full")
    assert "not recorded" not in recorded_settings({**given, "sync_call": "fdatasync"})[1]
    (tmp_path / sql_settings.NAME).write_text(f'{text}\nsync_call = "fdatasync"')
    fields, note = recorded_settings(given)
    assert (fields["sync_call"], "not recorded" in note) == ("fdatasync", False)
    assert recorded_settings({**given, "workload": "sqlite-insert"}) == ({}, "")
    assert recorded_settings({"scripts": str(tmp_path)})[0]["workload"] == "sql-recorded"
    assert "workload=sql" in recorded_settings({**given, "workload": "sql"})[1].partition(";")[2]


@pytest.mark.parametrize("line", ['device = "x"', 'journal_mode = "no"', "journal_mode ="])
def test_a_stranger_sets_nothing_else(tmp_path: Path, line: str) -> None:
    (tmp_path / "settings.toml").write_text(line)
    with pytest.raises(UseError, match=r"settings\.toml"):
        recorded_settings({"workload": "sql-recorded", "scripts": str(tmp_path)})


SQL_SCRIPTS_CASE = 'question = "?"\n[case]\nworkload = "{}"\n'


def plan_sql_scripts(folder: Path, workload: str, more: str, *settings: str) -> Experiment:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app/transaction.sql").write_text("SELECT 1;\n")
    (folder / "experiment.toml").write_text(SQL_SCRIPTS_CASE.format(workload) + more)
    return plan(read(folder / "experiment.toml", settings)).experiment


def test_scripts_that_go_round_have_a_length_and_recorded_ones_have_none(tmp_path: Path) -> None:
    [drawn] = plan_sql_scripts(tmp_path, "sql", 'scripts = "app"\n').cases
    assert drawn.inputs == {"scripts": tmp_path / "app"}
    assert drawn.settings["transactions"] == 200
    [recorded] = plan_sql_scripts(tmp_path, "sql-recorded", 'scripts = "app"\n').cases
    assert "transactions" not in recorded.settings
    # Those of rows that are made up belong to neither.
    assert not {"initial_rows", "value_bytes", "tables"} & drawn.settings.keys()
    assert {"journal_mode", "synchronous", "page_size_bytes"} <= recorded.settings.keys()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", "sql needs scripts = FOLDER"),
        ('scripts = "app"\npage_size_bytes = 1000\n', "no power of two"),
        ('scripts = "nowhere"\n', "is no folder"),
        ('scripts = "empty"\n', "has no transaction.sql and no transaction-NAME.sql"),
        ('scripts = "../app"\n', "not beneath the experiment's folder"),
        ('scripts = "app"\nvalue_bytes = 7\n', "sql has no field value_bytes"),
    ],
)
def test_unusable_scripts_are_refused(tmp_path: Path, more: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UseError, match=words):
        plan_sql_scripts(tmp_path, "sql", more)
