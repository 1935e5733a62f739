"""Folders of SQL scripts: beneath the experiment, or the user's own; the fields that they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, read
from jojlab.foundation.errors import UseError

CASE = 'question = "?"\n[case]\nworkload = "{}"\n'


def asked(folder: Path, workload: str, more: str, *settings: str) -> Experiment:
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app/transaction.sql").write_text("SELECT 1;\n")
    (folder / "experiment.toml").write_text(CASE.format(workload) + more)
    return plan(read(folder / "experiment.toml", settings)).experiment


def test_scripts_that_go_round_have_a_length_and_recorded_ones_have_none(tmp_path: Path) -> None:
    [drawn] = asked(tmp_path, "sql", 'scripts = "app"\n').cases
    assert drawn.inputs == {"scripts": tmp_path / "app"}
    assert drawn.settings["transactions"] == 200
    [recorded] = asked(tmp_path, "sql-recorded", 'scripts = "app"\n').cases
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
        ('scripts = "../app"\n', "not beneath the experiment's folder"),
        ('scripts = "app"\nvalue_bytes = 7\n', "sql has no field value_bytes"),
    ],
)
def test_what_cannot_run_is_told(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(UseError, match=words):
        asked(tmp_path, "sql", more)
