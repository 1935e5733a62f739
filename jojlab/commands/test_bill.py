"""The options of joj bill are the fields of a case."""

from __future__ import annotations

import inspect
import re

from typer.testing import CliRunner

from jojlab.cli import app
from jojlab.commands.bill import bill
from jojlab.experiment.fields import FIELDS


def test_every_field_has_an_option_and_no_other_has() -> None:
    own = {"seed", "no_cache", "timeout", "as_json", "settings", "argument", "cluster"}
    assert inspect.signature(bill).parameters.keys() - own == {field.name for field in FIELDS}


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
        "Fields of every workload but replays",
        "Fields of every workload of SQLite",
        "Fields of sqlite-insert, sqlite-update, sqlite-delete",
        "Fields of sql, sql-recorded",
        "Fields of file-write, file-read, file-metadata",
        "Fields of file-write, file-read",
        "Fields of file-write",
        "Fields of file-read",
        "Fields of file-metadata",
        "Fields of replay",
        "Fields of program",
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
        assert answer.exit_code == 2 and words in answer.stderr


def test_a_number_must_be_one() -> None:
    for field in FIELDS:
        if field.is_number:
            flag = f"--{field.name.replace('_', '-')}"
            answer = CliRunner().invoke(app, ["bill", flag, "many"])
            assert answer.exit_code == 2 and flag in answer.stderr
