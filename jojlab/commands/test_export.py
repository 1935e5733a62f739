"""Tests where an export goes: into a directory that is there, by default beside a recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.commands.export import _sibling


@pytest.mark.parametrize("form", ["perfetto", "mobigen"])
def test_a_directory_that_is_not_there_is_named(form: str, tmp_path: Path) -> None:
    out = tmp_path / "none" / "x"
    answer = CliRunner().invoke(app, ["export", str(tmp_path), "--format", form, "-o", str(out)])
    assert (answer.exit_code, f"{out.parent} is no directory" in answer.stderr) == (2, True)


def test_beside_a_recording_that_is_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "recording").mkdir()
    monkeypatch.chdir(folder)
    assert _sibling(Path(), ".mobigen") == tmp_path / "recording.mobigen"
    assert _sibling(Path("runs/r"), "-sql") == Path("runs/r-sql")
