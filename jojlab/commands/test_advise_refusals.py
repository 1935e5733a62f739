"""Tests what joj advise refuses before any guest is run: what is wrong, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.this_process import joj


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--guarantee", "durabel"], "(did you mean 'durable'?)"),
        (["--set", "filesystem=ext4,f2fs"], "an app has one filesystem now"),
        (["--p99-ms", "nan"], "--p99-ms nan: no finite number"),
        (["--reopened-share", "nan"], "--reopened-share nan: no finite number"),
        (["--set", "regime=fresh", "--reopened-share", "0.5"], "regime=fresh counts one alone"),
        (["--set", "workload=file-write", "--reopened-share", "0.5"], "has no regimes"),
        (["--set", "workload=sql", "--set", "scripts=.", "--most-rows", "5"], "--most-rows is of"),
        (["--fixed", "statements=1", "--most-rows", "5"], "--fixed statements=1 keeps"),
        (["--journal-device", "nokia"], "no device profile 'nokia'"),
        (["--journal-device", "qemu-nvme"], "--journal-device qemu-nvme is measured in real time"),
        (["--fixed", "filesystem=btrfs", "--journal-device", "ufs-3.1"], "journal-device ufs-3.1:"),
        (["--fixed", "journal_device=none", "--journal-device", "ufs-3.1"], "=none stays"),
        (["--set", "workload=sql", "--set", "scripts=nowhere"], "nowhere is no folder"),
    ],
)  # fmt: skip
def test_requests_that_no_search_can_answer_are_refused(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    answer = joj("advise", *arguments, folder=tmp_path)
    assert answer.returncode == 2
    said = " ".join(answer.stderr.split())
    assert told in said
    assert "remedy: " in said
    assert "settings that the manuals allow" not in said  # no plan of what cannot be run
    assert list(tmp_path.iterdir()) == []
    assert answer.stdout == ""


def test_scripts_that_write_otherwise_in_a_second_run_are_named_before_any_guest_runs(
    tmp_path: Path,
) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "schema.sql").write_text("CREATE TABLE t (x, at);\n")
    (app / "transaction.sql").write_text(
        "BEGIN;\nINSERT INTO t VALUES (:int(1,9), datetime('now'));\n"
        "UPDATE t SET x = random() WHERE x = 3;\nCOMMIT;\n"
    )
    answer = joj("advise", "--set", "workload=sql", "--set", "scripts=app", folder=tmp_path)
    assert answer.returncode == 2
    assert answer.stdout == ""
    said = " ".join(answer.stderr.split())
    assert "transaction.sql:2: INSERT INTO t VALUES" in said
    assert "(datetime())" in said
    assert "and 1 statement more" in said
    assert "remedy: give the values as arguments" in said
    assert "settings that the manuals allow" not in said
    assert not (tmp_path / "runs").exists()


def test_a_workload_whose_power_is_not_cut_is_refused_at_once(tmp_path: Path) -> None:
    answer = joj("advise", "--set", "workload=file-passes", folder=tmp_path)
    assert answer.returncode == 2
    assert "no power cut can test it: workload file-passes" in answer.stderr
