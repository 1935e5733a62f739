"""Runs as the user meets them: again, changed, with cases skipped or failed, a table damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.command.conftest import CHECKOUT, SMALL, Lab


def test_again_takes_the_next_folder_and_the_cache(lab: Lab) -> None:
    for number, folder in enumerate(("first-look", "first-look-2", "first-look-3")):
        answer = lab.joj_here("run", "first-look", *SMALL)
        assert answer.returncode == 0, answer.stderr
        assert f"runs/{folder}/report.html" in answer.stdout
        assert (lab.folder / "runs" / folder / "report.html").is_file()
        assert number == 0 or "1 capture (1 from the cache)" in answer.stderr
    hashes = {lab.joj_here("show", run, "--hash").stdout for run in (lab.folder / "runs").iterdir()}
    assert len(hashes) == 1
    assert lab.joj_here("diff", "runs/first-look", "runs/first-look-3").returncode == 0


def test_diff_of_two_settings_names_the_field(lab: Lab, finished_run: Path) -> None:
    changed = lab.joj_here(
        "run", "first-look", *SMALL, "--set", "value_bytes=5000", "--out", "changed"
    )
    assert changed.returncode == 0, changed.stderr
    answer = lab.joj_here("diff", finished_run, "changed")
    assert answer.returncode == 1
    assert "value_bytes: 100 → 5000" in answer.stdout
    assert "bytes_per_commit" in answer.stdout
    document = json.loads(lab.joj_here("diff", finished_run, "changed", "--json").stdout)
    assert document["settings"] == {"case": {"value_bytes": {"old": 100, "new": 5000}}}
    figures = {change["figure"]: change for change in document["changes"]}
    change = figures["bytes_per_commit"]
    assert change["new"] > change["old"] > 0


def test_the_bill_has_the_shape_that_scripts_rely_on(lab: Lab, finished_run: Path) -> None:
    options = ["--filesystem", "ext4", "--journal-mode", "wal", "--transactions", "7"]
    options += ["--autocheckpoint", "sqlite", "--wal-autocheckpoint-pages", "100"]
    answer = lab.joj_here("bill", *options, "--json")
    assert answer.returncode == 0, answer.stderr
    bill = json.loads(answer.stdout)
    assert bill["transactions"] == 7
    assert {"requests", "bytes", "flushes", "latency_ns_p50"} <= bill["per_commit"].keys()
    assert bill["lost_events"] == bill["unattributed_bytes"] == 0
    for row in bill["rows"]:
        assert row.keys() >= {"block_type", "file_kind", "file", "requests", "bytes", "cause"}
    # Every byte stands in one row, and the run of the same case has the same figures.
    within = bill["within_commit"]["total"]
    assert sum(row["total_bytes"] for row in bill["rows"]) == within["bytes"] > 0
    assert within["bytes"] + bill["deferred"]["total"]["bytes"] == bill["total"]["bytes"]
    run = json.loads(lab.joj_here("show", finished_run, "--json").stdout)["cases"][0]
    assert run["figures"]["bytes_per_commit"] == bill["per_commit"]["bytes"]
    assert run["figures"]["latency_ns_p50"] == bill["per_commit"]["latency_ns_p50"]
    assert list(lab.folder.iterdir()) == []  # it leaves no run folder


def test_a_case_that_its_filesystem_cannot_run_is_skipped_and_shown(lab: Lab) -> None:
    matrix = ["--set=filesystem=ext4,f2fs", "--set=batch_atomic_write=on"]
    asked = ["--set=journal_mode=truncate", "--set=transactions=7", "--set=seeds=1"]
    asked += ["--set=regime=fresh", "--set=sync_call=fsync"]
    ran = lab.joj_here("run", "first-look", *matrix, *asked)
    shown = lab.joj_here("show", "runs/first-look")
    for answer in (ran, shown):
        assert answer.returncode == 0, answer.stderr
        assert "skipped ext4: ext4 has no batch atomic write" in answer.stdout
    cases = json.loads(lab.joj_here("show", "runs/first-look", "--json").stdout)["cases"]
    assert [case["status"] for case in cases] == ["skipped", "ok"]
    assert cases[0]["figures"] == {}
    assert "batch atomic write" in cases[0]["reason"]
    assert "batch atomic write" in (lab.folder / "runs/first-look/report.html").read_text()


def test_a_full_device_fails_its_case_alone(lab: Lab) -> None:
    profile = (CHECKOUT / "devices" / "emmc-galaxy-s3.toml").read_text()
    profile = profile.replace('name = "emmc-galaxy-s3"', 'name = "small"')
    profile = profile.replace("capacity_bytes = 2147483648", f"capacity_bytes = {8 << 20}")
    profile = profile.replace("units_per_erase_block = 128", "units_per_erase_block = 8")
    (lab.folder / "small.toml").write_text(profile)
    # The database is less than three quarters of the device, so nothing refuses it before; beside
    # ext4's journal of 3 MiB it does not fit.
    asked = ["--set=device=small.toml", "--set=value_bytes=100,100000", "--set=transactions=55"]
    only = ["--set=filesystem=ext4", "--set=journal_mode=truncate", "--set=seeds=1"]
    only += ["--set=regime=fresh", "--set=sync_call=fsync"]
    answer = lab.joj_here("run", "first-look", *asked, *only, "--set=mkfs_options=-J size=3")
    assert answer.returncode == 3
    assert "100000, seed 1 failed: " in answer.stderr
    assert "full" in answer.stderr
    assert "1 capture (0 from the cache), 1 failed" in answer.stderr
    cases = json.loads(lab.joj_here("show", "runs/first-look", "--json").stdout)["cases"]
    assert [case["status"] for case in cases] == ["ok", "failed"]
    assert cases[0]["figures"]["transactions"] == 55
    assert "full" in cases[1]["reason"]
    assert lab.joj_here("show", "runs/first-look").returncode == 4


def test_a_case_that_takes_too_long_is_ended(lab: Lab) -> None:
    answer = lab.joj_here(
        "run", "first-look", *SMALL, "--set=transactions=100003", "--timeout", "1"
    )
    assert answer.returncode == 3
    assert "the guest did not finish within 1 s" in answer.stdout
    assert lab.guests() == []


@pytest.fixture
def damaged_table(lab: Lab, finished_run: Path) -> Path:
    """A run one of whose tables was cut short."""
    copy = lab.folder / "damaged"
    shutil.copytree(finished_run, copy)
    table = copy / "captures" / "case" / "seed-1" / "page_runs.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    return table


def test_a_damaged_table_is_named_by_every_reader(
    lab: Lab, finished_run: Path, damaged_table: Path
) -> None:
    before = (lab.folder / "damaged" / "report.html").read_bytes()
    for arguments in (
        ["show", "damaged"],
        ["show", "damaged", "--json"],
        ["show", "damaged", "--hash"],
        ["report", "damaged"],
        ["diff", "damaged", finished_run],
        ["diff", finished_run, "damaged"],
        ["query", "damaged", "SELECT count(*) FROM page_runs"],
        ["query", "damaged", "SELECT count(*) FROM requests"],
    ):
        answer = lab.joj_here(*arguments)
        assert answer.returncode == 4, arguments
        assert str(damaged_table.relative_to(lab.folder)) in answer.stderr
        assert "remedy:" in answer.stderr
        assert answer.stdout == ""
    assert (lab.folder / "damaged" / "report.html").read_bytes() == before
