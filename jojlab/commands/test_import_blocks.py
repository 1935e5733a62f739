import json
from pathlib import Path

import pytest

from jojlab.commands.import_ import blocks
from jojlab.foundation.errors import MachineError
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run
from tests.this_process import joj

TRACE = """\
  8,0    1        1     0.000001000   697  Q  WS 800 + 8 [sqlite3]
  8,0    1        2     0.000002000   697  D  WS 800 + 8 [sqlite3]
  8,0    1        3     0.000900000     0  C  WS 800 + 8 [0]
"""


def test_a_trace_goes_in_is_shown_and_goes_out(tmp_path: Path) -> None:
    (tmp_path / "sda.txt").write_text(TRACE)
    answer = joj("import", "blocks", "sda.txt", "--json", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr  # blkparse never tells owners
    document = json.loads(answer.stdout)
    assert document["reasons"] == []
    assert "4096 bytes have no owner" in document["untold"][0]
    assert (document["run"], document["requests"]) == ("runs/sda", 1)
    shown = joj("show", "runs/sda", folder=tmp_path)
    assert "1 write of 4 KiB" in shown.stdout
    assert "4096 bytes have no owner" in shown.stdout
    assert shown.returncode == 4
    assert joj("report", "runs/sda", folder=tmp_path).returncode == 4
    absent = joj("query", "runs/sda", "SELECT * FROM transactions", folder=tmp_path)
    assert absent.returncode == 2
    assert "no capture of this run has the table transactions" in absent.stderr
    assert "its tables: requests, page_runs, files, manifest" in absent.stderr
    written = joj("export", "runs/sda", "--format", "iolog", "-o", "x.iolog", folder=tmp_path)
    assert written.stdout == "1 request  x.iolog\n"
    assert written.returncode == 4
    assert "0 /dev/8-0 write 409600 4096" in (tmp_path / "x.iolog").read_text()


def test_a_line_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "sda.txt").write_text(TRACE.replace("D  WS 800", "D  WS 18446744073709551616"))
    answer = joj("import", "blocks", "sda.txt", folder=tmp_path)
    assert answer.returncode == 4
    assert "incomplete: 1 line could not be read: line 2: 1844674" in answer.stdout
    assert [run.name for run in (tmp_path / "runs").iterdir()] == ["sda"]


def test_an_import_without_completions_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / "sda.txt").write_text("".join(TRACE.splitlines(keepends=True)[:2]))
    answer = joj("import", "blocks", "sda.txt", folder=tmp_path)
    assert answer.returncode == 4
    assert "incomplete: 1 request was not seen to complete" in answer.stdout
    assert "note: 4096 bytes have no owner" in answer.stdout


def test_an_error_is_told_though_the_run_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sda.txt").write_text(TRACE)
    monkeypatch.chdir(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise MachineError("the disk is full")

    monkeypatch.setattr(RunFolder, "add_capture", fail)
    with pytest.raises(MachineError, match="the disk is full"):
        blocks.main([str(tmp_path / "sda.txt")], standalone_mode=False)
    assert not list((tmp_path / "runs").iterdir())


def test_formats_are_named(tmp_path: Path) -> None:
    (tmp_path / "sda.txt").write_text(TRACE)
    answer = joj("import", "blocks", "sda.txt", "--format", "blkpars", folder=tmp_path)
    assert answer.returncode == 2
    assert "did you mean 'blkparse'" in answer.stderr
    assert joj("import", "none.txt", folder=tmp_path).returncode == 2
    assert joj("export", "none", "--format", "perfeto", folder=tmp_path).returncode == 2


def test_kinds_of_io_are_printed_as_json(tmp_path: Path) -> None:
    make_run(tmp_path / "run", seeds=[1], transactions=4)
    answer = joj("show", "run", "--characterise", "--json", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    cases = json.loads(answer.stdout)["cases"]
    assert [case["case"]["journal_mode"] for case in cases] == ["truncate", "wal"]
    shares = cases[0]["characterisation"]["write"]["block_type"]
    assert {row["value"]: row["requests"] for row in shares} == {
        "data": 12,
        "fs-journal": 16,
        "fs-metadata": 1,
    }
