"""The options of joj bill are the fields of a case."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.commands.bill import _show, bill
from jojlab.model.fields import FIELDS
from tests.captures import CaptureBuilder, run_of


def test_every_field_has_an_option_and_no_other_has() -> None:
    own = {"seed", "no_cache", "timeout", "as_json", "settings", "argument", "cluster", "like",
           "durability", "native", "states", "figures"}  # fmt: skip
    assert {option.name for option in bill.params} - own == {field.name for field in FIELDS}


def test_help_tells_values_and_defaults() -> None:
    answer = CliRunner().invoke(app, ["bill", "--help"], terminal_width=10_000)
    assert answer.exit_code == 0
    shown = re.sub(r"\s+", " ", answer.stdout)
    for field in FIELDS:
        assert f"--{field.name.replace('_', '-')} " in shown
        assert ", ".join(field.choices) in shown
        assert field.default in (None, "") or f"default: {field.default}]" in shown
        assert field.range in shown
    headings = re.findall(r"(?m)^(\S.*):$", answer.stdout)
    assert headings == [
        "Fields of every workload",
        "Fields of workloads with a number of transactions",
        "Fields of every workload of SQLite",
        "Fields of sqlite-insert, sqlite-update, sqlite-delete",
        "Fields of sql, sql-recorded",
        "Fields of file-write, file-read, file-metadata",
        "Fields of file-write, file-read",
        "Fields of file-write, file-read, file-passes",
        "Fields of file-write",
        "Fields of file-write, file-passes",
        "Fields of file-read",
        "Fields of file-metadata",
        "Fields of replay",
        "Fields of program",
        "Fields of workloads beneath which an error can be planted",
        "Options",
    ]


def test_set_changes_one_case_and_makes_no_axis() -> None:
    for setting, words in (
        ("device.erase_ns=1,2", "one case"),
        ("seeds=2", "one case"),
        ("device.erase_ns=0", "allowed: 1 to"),
        ("jurnal_mode=wal", "did you mean 'journal_mode'"),
    ):
        answer = CliRunner().invoke(app, ["bill", "--set", setting])
        assert answer.exit_code == 2
        assert words in answer.stderr


@pytest.mark.parametrize(
    "flags",
    [
        "--workload sql-recorded --scripts .",
        "--set workload=sql-recorded --set scripts=.",
        "--workload sql-recorded --set scripts=.",
    ],
)
def test_settings_beside_scripts_are_read_however_the_scripts_are_named(
    flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "transaction.sql").write_text("SELECT 1;")
    (tmp_path / "settings.toml").write_text('journal_mode = "no"')
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["bill", *flags.split()])
    assert answer.exit_code == 2
    assert "settings.toml: journal_mode" in answer.stderr


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("recording", "no-such-file is no file or folder"),
        ("program", "no-such-file"),
        # Two workloads need it: which one is meant, is not said.
        ("scripts", "sqlite-insert has no field scripts"),
    ],
)
def test_a_field_that_one_workload_needs_chooses_it(option: str, error: str) -> None:
    answer = CliRunner().invoke(app, ["bill", f"--{option}", "./no-such-file"])
    assert answer.exit_code == 2
    assert error in answer.stderr


@pytest.mark.parametrize("words", ["bill", "run first-look"])
def test_native_judging_is_of_power_cuts(words: str) -> None:
    answer = CliRunner().invoke(app, [*words.split(), "--native"])
    assert answer.exit_code == 2
    assert "--native judges what power cuts leave" in answer.stderr
    assert "add --durability" in answer.stderr


def test_a_number_must_be_one() -> None:
    for field in FIELDS:
        if field.is_number:
            flag = f"--{field.name.replace('_', '-')}"
            answer = CliRunner().invoke(app, ["bill", flag, "many"])
            assert answer.exit_code == 2
            assert flag in answer.stderr


def test_a_program_that_makes_nothing_durable_has_no_bill_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = CaptureBuilder({"workload": "program", "journal_mode": None}, 1)
    builder.request([("data", "", builder.file("/a", "other"), 4096)], sector=800)
    builder.settle()
    none = dict.fromkeys(("commits", "checkpoints", "rollbacks", "syncs"), 0)
    builder.more_manifest["program"] = {
        "command": ["cp", "a", "b"], "exit_code": 0, "signal": None, "timed_out": False,
        "bytes_after_last": 0, "output": "", "output_bytes": 0, **none}  # fmt: skip
    run = run_of(tmp_path, builder)
    for as_json in (True, False):
        assert _show(run, as_json=as_json, refutable=False) == 0
        said = capsys.readouterr()
        assert "there is none to divide by (cp ended with exit code 0: no call that" in said.err
        if as_json:
            found = json.loads(said.out)
            assert (found["case_id"], found["transactions"], found["hazards"]) == ("a", 0, [])
            assert found["incomplete_reasons"] == []
            assert f"joj: {found['no_bill']}\n" == said.err
        else:
            assert "[min–max]" not in said.out  # no head without a figure
