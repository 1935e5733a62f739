"""Tests where an export goes: into a directory that is there, by default beside a recording."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.commands.export import _sibling, mount_command


@pytest.mark.parametrize("form", ["perfetto", "mobigen"])
def test_a_directory_that_is_not_there_is_named(form: str, tmp_path: Path) -> None:
    out = tmp_path / "none" / "x"
    answer = CliRunner().invoke(app, ["export", str(tmp_path), "--format", form, "-o", str(out)])
    assert (answer.exit_code, f"{out.parent} is no directory" in answer.stderr) == (2, True)


def test_an_export_lies_beside_its_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "recording").mkdir()
    monkeypatch.chdir(folder)
    assert _sibling(Path(), ".mobigen") == tmp_path / "recording.mobigen"
    assert _sibling(Path("runs/r"), "-sql") == Path("runs/r-sql")


@pytest.fixture
def sql_recording(tmp_path: Path) -> Path:
    entries = {"key": ["recording_version", "recorder"], "value": ["1", '"sqlite"']}
    (folder := tmp_path / "recording").mkdir()
    pq.write_table(pa.table(entries), folder / "manifest.parquet")
    return folder


def test_a_refused_export_leaves_the_file_that_was_there(sql_recording: Path) -> None:
    (out := sql_recording / "app.mobigen").write_text("mine")
    words = ["export", str(sql_recording), "--format", "mobigen", "-o", str(out)]
    answer = CliRunner().invoke(app, words)
    assert (answer.exit_code, out.read_text()) == (2, "mine")
    assert "a recording of SQL" in answer.stderr
    assert {it.name for it in sql_recording.iterdir()} == {"app.mobigen", "manifest.parquet"}


@pytest.mark.parametrize("words", ["sql --case a", "mobigen --seed 1"])
def test_a_recording_has_no_cases(words: str, sql_recording: Path) -> None:
    answer = CliRunner().invoke(app, ["export", str(sql_recording), "--format", *words.split()])
    assert (answer.exit_code, "leave out --case and --seed" in answer.stderr) == (2, True)


def test_export_of_no_recording_is_refused(tmp_path: Path) -> None:
    for name, words in ((".", "no recording"), ("none", "no such folder")):
        answer = CliRunner().invoke(app, ["export", str(tmp_path / name), "--format", "sql"])
        assert answer.exit_code == 2
        assert f"{tmp_path / name}: {words}\n" in answer.stderr


@pytest.mark.parametrize(("filesystem", "option"), [("ext4", "journal_path"), ("xfs", "logdev")])
def test_the_image_of_a_journal_s_device_is_mounted_with_it(filesystem: str, option: str) -> None:
    settings = {"filesystem": filesystem, "mount_options": "noatime"}
    assert mount_command(settings, [Path("a.img"), Path("b c.img")]) == (
        "journal=$(losetup -f --show 'b c.img') && "
        f"sudo mount -t {filesystem} -o loop,noatime,{option}=$journal a.img /mnt"
    )
