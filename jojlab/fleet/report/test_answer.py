"""The short answer of a fleet: its numbers are those of `--json`, and what is missing is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from markupsafe import escape

from jojlab.cli import app
from jojlab.fleet.report.answer import fleet_lines, print_study
from jojlab.fleet.simulation.segments import SimulatedFleet, write_fleet
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import LeftOutFile, fleet_files
from jojlab.fleet.study.engines import DuckDbEngine
from jojlab.fleet.study.study import FleetStudy, SettingCost, fleet_study
from jojlab.report.shared.short_answer import MOST_COLUMNS, MOST_LINES, duration, number, percent
from tests.screens import check_screen, each_width


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    assert len(list(write_fleet(SimulatedFleet(devices=2, days=3), folder))) == 6
    return folder


@pytest.fixture(scope="module")
def study(data: Path) -> FleetStudy:
    return fleet_study(DuckDbEngine(fleet_files(open_store(str(data)))))


def run_report(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["fleet", "report", *arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_numbers_are_those_of_json(data: Path) -> None:
    document = json.loads(run_report("--data", str(data), "--json"))
    day, commits, written, writer, joined, missing = document["in_short"]
    assert f"commits {number(round(document['daily_commits']))} times a day" in day
    assert f"writes {number(document['daily_write_bytes'] / 1e6)} MB: 2 devices, 6 device" in day
    first = max(document["commits"], key=lambda row: row["commits"])
    share = first["commits"] / sum(row["commits"] for row in document["commits"])
    assert commits == (
        f"{percent(share)} of the commits are {first['journal_mode']} with {first['sync_call']}, "
        f"median {duration(first['median_ns'])}, 95 % within {duration(first['p95_ns'])}."
    )
    [name, *_] = document["written_shares"]
    assert written.startswith(
        f"{percent(document['written_shares'][name])} of the bytes written are {name}, "
    )
    assert sum(document["written_shares"].values()) == pytest.approx(1)
    most = document["apps"][0]
    whole = sum(each["daily_bytes"] for each in document["apps"])
    assert writer == (
        f"{most['process']} writes most, {percent(most['daily_bytes'] / whole)} of the bytes: a "
        f"year takes at least {number(most['life_a_year'] * 100)} % of 3,000 erases."
    )
    each_day = document["multi_file_transactions"] / document["device_days"]
    assert joined.startswith(f"{number(round(each_day, 1))} transactions a day were over several")
    assert missing == "Nothing that was observed is missing."


def test_terminal_json_and_page_say_the_same(data: Path, tmp_path: Path) -> None:
    lines = json.loads(run_report("--data", str(data), "--json"))["in_short"]
    out = tmp_path / "fleet.html"
    assert run_report("--data", str(data), "-o", str(out)).splitlines()[: len(lines)] == lines
    assert all(f"<p>{escape(line)}</p>" in out.read_text() for line in lines)


def test_the_fleet_answer_always_has_losses_and_costs_of_settings(study: FleetStudy) -> None:
    losses = replace(study.losses, missing_segments=2, lost_events=1)
    settings = [SettingCost("truncate", 9e9, None, None), SettingCost("wal", 2e9, None, None)]
    whole = replace(
        study, losses=losses, left_out=[LeftOutFile("a.tar", "it is cut")], settings=settings
    )
    lines = fleet_lines(whole)
    assert len(lines) == MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert lines[-1] == (
        "Incomplete: 2 segments were lost; 1 event was lost; 1 file cannot be read."
    )
    assert "By the lab's bills these commits wait 2 s a day with wal; 9 s with truncate." in lines


@each_width
def test_a_screen_is_as_it_was(study: FleetStudy, width: int) -> None:
    check_screen("fleet-report", width, lambda console: print_study(console, study))
