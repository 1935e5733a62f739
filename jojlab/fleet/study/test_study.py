"""Tests what is reported by DuckDB of a simulated fleet, and of one that lacks something."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.fleet.report.page import day_page, study_page
from jojlab.fleet.report.words import (
    day_databases_table,
    day_remarks,
    loss_lines,
    remarks,
    study_remarks,
)
from jojlab.fleet.simulation.phones import USERS
from jojlab.fleet.simulation.segments import SimulatedFleet, write_fleet
from jojlab.fleet.store.devices import enrol, revoke
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import fleet_ask, fleet_files, silent_devices
from jojlab.fleet.study.device_day import DeviceDay, device_day
from jojlab.fleet.study.engines import DuckDbEngine
from jojlab.fleet.study.study import FleetStudy, fleet_json, fleet_study
from jojlab.foundation.errors import DataError, UseError
from jojlab.trace.schema import FLEET_TABLES, table_schema
from tests.this_process import joj

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def fleet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    days = list(write_fleet(SimulatedFleet(devices=2, days=3, segments_a_day=4), folder))
    assert len(days) == 6
    return folder


def engine(folder: Path) -> DuckDbEngine:
    return DuckDbEngine(fleet_files(open_store(str(folder))))


def study(folder: Path) -> FleetStudy:
    return fleet_study(engine(folder))


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    files = sorted((folder / table).rglob("*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.full
def test_published_table_2_comes_back_from_a_made_fleet(tmp_path: Path) -> None:
    for _ in write_fleet(SimulatedFleet(devices=4, days=90), tmp_path):
        pass
    for user, row in zip(USERS, study(tmp_path).users, strict=True):
        assert row["days"] == 90
        assert row["average"] == pytest.approx(user.average, rel=0.01)
        assert row["median"] == pytest.approx(user.median, abs=1)
        assert row["upper_quartile"] == pytest.approx(user.upper_quartile, abs=1)
        assert row["most"] == user.most


def test_percentiles_of_commits_are_exact(fleet_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(fleet_folder, tmp_path, dirs_exist_ok=True)
    # Groups of one and of two, a group of equal ones, and times that are 0 or years.
    [path, *_] = sorted((tmp_path / "commits").rglob("*.parquet"))
    table = pq.ParquetFile(path).read()
    [row] = table.slice(0, 1).to_pylist()
    times = {"one": [7], "two": [0, 2**60], "equal": [5] * 9, "near": range(10**9, 10**9 + 40)}
    added = [
        row | {"kind": kind, "duration_ns": each}
        for kind, all_ns in times.items()
        for each in all_ns
    ]
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist(added, table.schema)]), path)
    here = engine(tmp_path)
    own = {
        (row["kind"], row["journal_mode"], row["sync_call"]): (row["median_ns"], row["p95_ns"])
        for row in fleet_ask(here, "commits")
    }
    expected = here.rows(
        "SELECT kind, journal_mode, sync_call, "
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ns) AS median_ns, "
        "percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ns) AS p95_ns "
        "FROM commits GROUP BY ALL"
    )
    assert len(own) == len(expected) > len(times)
    for row in expected:
        key = (row["kind"], row["journal_mode"], row["sync_call"])
        assert own[key] == pytest.approx((row["median_ns"], row["p95_ns"]), rel=1e-12)


def test_every_row_is_counted_once(fleet_folder: Path) -> None:
    found = study(fleet_folder)
    commits = rows_of(fleet_folder, "commits")
    assert found.device_days == 6
    assert len(found.coverage) == 2
    assert found.daily_commits * 6 == pytest.approx(len(commits))
    joined = [row["super_journal"] for row in commits if row["super_journal"]]
    assert found.multi_file == len(set(joined)) == len(joined) > 0
    assert sum(row["transactions"] for row in found.multi_file_apps) == len(joined)
    io = rows_of(fleet_folder, "io_sums")
    assert sum(row["moved_bytes"] for row in found.io_mix) == sum(r["moved_bytes"] for r in io)
    written = sum(row["moved_bytes"] for row in io if row["operation"] == "write")
    assert sum(each.daily_bytes for each in found.apps) * 6 == pytest.approx(written)
    assert sum(row["write_bytes"] for row in found.hours) == written
    assert sum(row["write_bytes"] for row in found.coverage) == written


def test_shares_are_the_published_ones(fleet_folder: Path) -> None:
    for each in study(fleet_folder).shares:
        assert each.share == pytest.approx(each.published, abs=0.01), each.name


def test_a_whole_fleet_lacks_nothing(fleet_folder: Path) -> None:
    found = study(fleet_folder)
    assert not found.losses.is_incomplete
    assert loss_lines(found.losses) == []
    assert remarks(found.losses) == []
    assert json.loads(json.dumps(fleet_json(found)))["losses"]["missing_segments"] == 0


def change_rows(folder: Path, change: Change, number: int = 1, table: str = "segments") -> None:
    """Change the rows of one segment, as they are stored."""
    file = sorted((folder / table).rglob("*.parquet"))[number]
    rows = pq.ParquetFile(file).read().to_pylist()
    for row in rows:
        change(row)
    pq.write_table(pa.Table.from_pylist(rows, table_schema(f"fleet/{table}").arrow()), file)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"lost_events": 3}, "3 events were lost"),
        ({"dropped_rows": 1}, "1 row was left out"),
        ({"dropped_segments": 2}, "2 segments were dropped"),
        ({"unattributed_bytes": 512}, "512 bytes have no owner"),
        ({"incomplete": "the disk went away"}, "1 segment is incomplete"),
        ({"sequence": 4000}, "lost"),
        ({"sequence": 0}, "1 segment has another's number"),
    ],
)
def test_losses_of_a_fleet_are_told(tmp_path: Path, change: dict[str, Any], line: str) -> None:
    for _ in write_fleet(SimulatedFleet(devices=1, days=1, segments_a_day=3), tmp_path):
        pass
    places = {row["sequence"]: place for place, row in enumerate(rows_of(tmp_path, "segments"))}
    change_rows(tmp_path, lambda row: row.update(change), places[1])
    found = study(tmp_path)
    assert found.losses.is_incomplete
    assert any(line in each for each in loss_lines(found.losses)), loss_lines(found.losses)
    first_lines = str(study_page(found, "fleet")).split("<nav>")[0]
    assert line in unescape(first_lines)


def test_a_device_that_gets_a_new_name_counts_on(tmp_path: Path) -> None:
    for _ in write_fleet(SimulatedFleet(devices=1, days=1, segments_a_day=3), tmp_path):
        pass
    for table in FLEET_TABLES:
        [first, second, _] = sorted((tmp_path / table).rglob("*.parquet"))
        other = first.parent.with_name("device=phone-2")
        other.mkdir()
        first.rename(other / first.name)
        # It was stored, and sent again under the new name.
        (other / second.name).write_bytes(second.read_bytes())
    found = study(tmp_path).losses
    assert (found.missing_segments, found.twice) == (0, 1)


def test_a_lost_segment_and_time_unobserved_are_told_apart(tmp_path: Path) -> None:
    for _ in write_fleet(SimulatedFleet(devices=1, days=1, segments_a_day=3), tmp_path):
        pass
    by_number = {
        row["sequence"]: file
        for file in sorted((tmp_path / "segments").rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    }
    by_number[1].unlink()
    found = study(tmp_path).losses
    assert found.missing_segments == 1
    assert found.unobserved_hours == pytest.approx(8)
    assert device_day(engine(tmp_path), "made-0001", "").losses.missing_segments == 1


def one_day(folder: Path, segments: int = 2) -> Path:
    for _ in write_fleet(SimulatedFleet(devices=1, days=1, segments_a_day=segments), folder):
        pass
    return folder


def test_a_day_of_which_a_minute_was_observed_is_told_so(tmp_path: Path) -> None:
    one_day(tmp_path, 1)
    change_rows(
        tmp_path, lambda row: row.update(end_boot_ns=row["begin_boot_ns"] + 90 * 10**9), number=0
    )
    [first, *_] = remarks(study(tmp_path).losses)
    assert first.startswith("Observed: 90 s of the 24 hours that 1 device-day has.")


def test_devices_that_sent_nothing_are_named(tmp_path: Path) -> None:
    one_day(tmp_path)
    store = open_store(str(tmp_path))
    for name in ("made-0001", "quiet", "gone"):
        enrol(store, name, 0)
    revoke(store, "gone", 1)
    assert silent_devices(store, {"made-0001"}) == (["quiet"], [])
    [line] = study_remarks(replace(study(tmp_path), silent=["quiet"]))
    assert line == "1 enrolled device without any segment: quiet"
    [line] = study_remarks(replace(study(tmp_path), ahead=["early", "odd"]))
    assert line == "2 devices have days that have not come yet, as a clock was wrong: early, odd"


def test_checkpoints_are_no_commits_of_a_day_and_missing_bills_are_counted(tmp_path: Path) -> None:
    one_day(tmp_path)
    bill = dict.fromkeys(
        ("requests", "database_bytes", "journal_bytes", "filesystem_bytes", "flushes")
    )
    change_rows(tmp_path, lambda row: row.update(bill), 0, "commits")
    change_rows(tmp_path, lambda row: row.update(kind="checkpoint"), 1, "commits")
    own = rows_of(tmp_path, "commits")
    commits = [row for row in own if row["kind"] == "commit"]
    found = device_day(engine(tmp_path), "made-0001", "")
    assert found.commit_count == found.unbilled_commits == len(commits) > 0
    assert sum(row["commits"] for row in found.databases) <= len(commits)
    whole = study(tmp_path)
    assert whole.unbilled_commits == len(commits) < len(own)
    for lines in (study_remarks(whole), day_remarks(found)):
        assert "it is not known what they made the device write" in lines[-1]


def test_times_of_a_clock_that_was_wrong_are_in_the_day_too(tmp_path: Path) -> None:
    one_day(tmp_path)
    texts = {"databases": "no list", "database_count": 2}
    change_rows(tmp_path, lambda row: row.update(end_unix_ns=5, **texts), 0, "commits")
    change_rows(tmp_path, lambda row: row.update(utc_offset_s=-9 * 3600), 1)
    found = device_day(engine(tmp_path), "made-0001", "")
    assert {row["ten_minutes"] for row in found.commits} <= set(range(144))
    assert any("The time zone changed" in line for line in day_remarks(found))
    assert day_page(found, "fleet")


def test_a_day_of_a_device(fleet_folder: Path) -> None:
    found = device_day(engine(fleet_folder), "made-0002", "2026-01-02")
    own = [
        row
        for file in (fleet_folder / "commits/day=2026-01-02/device=made-0002").iterdir()
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    assert found.commit_count == len(own)
    assert found.multi_file == sum(row["super_journal"] is not None for row in own)
    dearest = sorted((row["duration_ns"] for row in own), reverse=True)[:10]
    assert [each.duration_ns for each in found.dearest] == dearest
    assert {row["ten_minutes"] for row in found.commits} <= set(range(144))
    [first, *_] = found.databases
    modes = {row["journal_mode"] for row in own if row["database"] == first["database"]}
    assert first["modes"] == len(modes) > 2
    shown = day_databases_table(found).rows[0][2]
    assert shown == f"{min(modes)}, {max(modes)} and {len(modes) - 2} more"
    page = day_page(found, "fleet")
    assert "made-0002, 2026-01-02" in page
    assert "one transaction" in page


def test_names_cannot_become_html(fleet_folder: Path) -> None:
    found = device_day(engine(fleet_folder), "made-0001", "")
    row = {"path": "/<script>x</script>", "file_kind": "db", "process": "<b>", "write_bytes": 1}
    page = day_page(DeviceDay(**(vars(found) | {"files": [row]})), "<i>")
    assert "<script>x" not in page
    assert "<b>" not in page
    assert "--data '<i>'" not in page


@pytest.mark.parametrize(
    ("device", "day", "said"),
    [("made-0003", "", "no such device"), ("made-0001", "2025-01-01", "nothing was observed")],
)
def test_an_unknown_device_or_day_is_refused(
    fleet_folder: Path, device: str, day: str, said: str
) -> None:
    with pytest.raises(UseError, match=said):
        device_day(engine(fleet_folder), device, day)


def test_a_folder_without_segments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no segments"):
        fleet_files(open_store(str(tmp_path)))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    for _ in write_fleet(SimulatedFleet(devices=1, days=1), tmp_path):
        pass
    [file] = (tmp_path / "commits").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match=re.escape(file.name)):
        study(tmp_path)


def test_the_names_of_one_device_cost_a_bounded_number_of_rows(tmp_path: Path) -> None:
    """Its sums stay, and the rows of others do."""
    files = fleet_of_two(tmp_path)
    before = study(tmp_path)
    for table, columns in {
        "io_sums": ("process", "block_type", "file_kind"),
        "commits": ("process", "journal_mode", "database"),
        "file_lives": ("file_kind", "process"),
        "file_sums": ("path", "process"),
    }.items():
        shown = pq.ParquetFile(files[table]).read()
        many = pa.concat_tables([shown] * (8000 // shown.num_rows + 1))
        for column in columns:
            place = many.schema.get_field_index(column)
            words = pa.array([f"{column}-{number}" for number in range(many.num_rows)])
            many = many.set_column(place, many.field(place), words)
        pq.write_table(many, files[table], store_schema=False)
    after = study(tmp_path)
    assert len(after.io_mix) <= len(before.io_mix) + 203
    assert len(after.apps) <= len(before.apps) + 1001
    assert len(after.commits) <= 202
    assert len(after.ages) <= len(before.ages) + 2001
    assert any(row["block_type"] == "(others)" for row in after.io_mix)
    assert any(each.process == "(others)" for each in after.apps)
    assert any(row["journal_mode"] == "(others)" for row in after.commits)
    moved = sum(row["moved_bytes"] for row in after.io_mix)
    assert moved == sum(row["moved_bytes"] for row in rows_of(tmp_path, "io_sums"))
    made = sum(row["commits"] for row in after.commits)
    assert made == len(rows_of(tmp_path, "commits"))
    assert sum(each.created for each in after.ages) == sum(
        row["files"] for row in rows_of(tmp_path, "file_lives") if row["event"] == "created"
    )
    assert {each.process for each in before.apps} <= {each.process for each in after.apps}
    study_page(after, str(tmp_path))
    found = device_day(engine(tmp_path), "made-0002", "2026-01-01")
    assert len({row["process"] for row in found.commits}) <= 201
    assert len(found.io) <= 144 * 101
    assert found.commit_count == sum(
        row["kind"] == "commit" for row in pq.ParquetFile(files["commits"]).read().to_pylist()
    )


def fleet_of_two(folder: Path) -> dict[str, Path]:
    """A made fleet of two devices and one day; the files of the second, by table."""
    for _ in write_fleet(SimulatedFleet(devices=2, days=1), folder):
        pass
    return {
        table: next((folder / table).rglob("device=made-0002/*.parquet")) for table in FLEET_TABLES
    }


def run_joj(*arguments: object, code: int) -> str:
    """Return what a command prints that ends with this code."""
    ended = joj(*map(str, arguments))
    assert ended.returncode == code, ended
    return ended.stdout + ended.stderr


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def says_geo(file: Path) -> None:
    """Return a file with the note by which DuckDB reads its texts as geometries."""
    column = {"encoding": "WKB", "geometry_types": []}
    note = {"version": "1.0.0", "primary_column": "process", "columns": {"process": column}}
    table = pq.ParquetFile(file).read()
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(note)}), file)


def overflows(file: Path) -> None:
    """The differences of its times do not fit into 64 bits."""
    table = pq.ParquetFile(file).read()
    times = {"end_unix_ns": 2**62, "begin_boot_ns": 2**62, "begin_unix_ns": 0, "end_boot_ns": 0}
    rows = [row | times for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file, store_schema=False)


def is_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/proc/kmsg")


def is_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("spoil", "table"),
    [
        (cut, "commits"), (cut, "segments"), (says_geo, "commits"), (overflows, "segments"),
        (is_a_link, "segments"), (is_a_link, "io_sums"), (is_a_pipe, "segments"),
        (Path.unlink, "file_sums"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_left_out_and_named(
    tmp_path: Path, spoil: Callable[[Path], None], table: str
) -> None:
    files = fleet_of_two(tmp_path)
    spoil(files[table])
    shown = run_joj("fleet", "report", "--data", tmp_path, code=4)
    assert files[table].name in shown
    assert "made-0001" in shown
    report = json.loads(run_joj("fleet", "report", "--data", tmp_path, "--json", code=4))
    assert [row["device"] for row in report["coverage"]] == ["made-0001"]
    assert [each["file"] for each in report["left_out"]] == [
        str(files[table].relative_to(tmp_path))
    ]


def test_a_bad_file_harms_its_own_device_alone(tmp_path: Path) -> None:
    cut(fleet_of_two(tmp_path)["segments"])
    assert "Incomplete" not in run_joj("fleet", "device", "made-0001", "--data", tmp_path, code=0)
    shown = run_joj("fleet", "device", "made-0002", "--data", tmp_path, code=4)
    assert "none of its segments can be read" in shown


def test_a_query_names_what_it_leaves_out(tmp_path: Path) -> None:
    cut(fleet_of_two(tmp_path)["commits"])
    shown = run_joj("query", tmp_path, "SELECT DISTINCT device FROM commits", code=4)
    assert "made-0001" in shown
    assert "left out: commits/" in shown
    run_joj("query", tmp_path / "nothing", "SELECT 1", code=2)


def test_links_to_folders_and_to_devices_hang_nothing(tmp_path: Path) -> None:
    fleet_of_two(tmp_path)
    (tmp_path / "segments" / "day=2026-01-01" / "device=x").symlink_to("/proc")
    enrol(open_store(str(tmp_path)), "linked", 0)
    is_a_link(tmp_path / "devices" / "linked.json")
    shown = run_joj("fleet", "report", "--data", tmp_path, code=4)
    assert "segments/day=2026-01-01/device=x cannot be read: no regular file" in shown
    run_joj("fleet", "devices", "--data", tmp_path, code=0)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW commits",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT 1; SELECT 2",
        "SELECT nothing FROM commits",
    ],
)
def test_a_query_reads_the_dataset_alone(fleet_folder: Path, sql: str) -> None:
    with pytest.raises(UseError):
        engine(fleet_folder).query(sql)


def test_a_query_has_device_and_day(fleet_folder: Path) -> None:
    answer = engine(fleet_folder).query(
        "SELECT device, day, count(*) AS n FROM commits GROUP BY ALL"
    )
    assert answer.num_rows == 6
    assert sum(answer["n"].to_pylist()) == len(rows_of(fleet_folder, "commits"))
