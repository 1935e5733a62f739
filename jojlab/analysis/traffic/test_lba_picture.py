from pathlib import Path

import pytest

from jojlab.analysis.commit.bill import CLASSES
from jojlab.analysis.traffic import lba_picture
from jojlab.analysis.traffic.lba_picture import LbaPicture, lba_pictures
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of

KIB = 1024


def pictures_of(folder: Path, builder: CaptureBuilder) -> tuple[LbaPicture, ...]:
    return lba_pictures(Dataset.from_runs(run_of(folder, builder)))["a"]


def two_streams(requests: int) -> CaptureBuilder:
    """Data at random low sectors, a journal in order far above, a flush after each pair."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    file_id = builder.file("/data", "other")
    for number in range(requests):
        sector = 8 * (number * 37 % 100)
        builder.request([("data", "", file_id, 4 * KIB)], sector=sector, service_time_ns=400_000)
        builder.request([("fs-journal", "log", None, 8 * KIB)], sector=1_000_000 + 16 * number)
        builder.request([], operation="flush")
    return builder


def test_points_are_page_runs_and_zones_leave_out_what_is_empty(tmp_path: Path) -> None:
    [picture] = pictures_of(tmp_path, two_streams(100))
    assert (picture.device, picture.seed, picture.requests) == ("flash0", 1, 300)
    assert (picture.binned, picture.files) == (False, ("/data",))
    assert picture.zones == ((0, 800), (1_000_000, 1_001_600))
    assert len(picture.flushes["begin_us"]) == 100
    points = picture.points
    assert len(points["sector"]) == 200
    assert points["begin_us"] == sorted(points["begin_us"])
    assert (points["begin_us"][0], points["service_us"][0]) == (0, 400)
    assert points["sector"][:4] == [0, 1_000_000, 8 * 37, 1_000_016]
    assert points["sectors"][:2] == [8, 16]
    assert [CLASSES[place] for place in points["class"][:2]] == ["other data", "filesystem journal"]
    assert points["file"][:2] == [0, -1]


def test_many_points_become_few_cells_that_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lba_picture, "MOST_POINTS", 50)
    [picture] = pictures_of(tmp_path, two_streams(200))
    assert picture.binned
    assert 2 <= len(picture.points["sector"]) <= 50
    assert sum(picture.points["requests"]) == 400
    points = zip(*(picture.points[c] for c in ("class", "sector", "sectors")), strict=True)
    for place, sector, sectors in points:
        low = CLASSES[place] == "other data"
        assert (sector + sectors <= 800) if low else (sector >= 1_000_000)


def test_every_sample_finds_the_same_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lba_picture, "MOST_POINTS", 50)
    found: list[LbaPicture] = []
    for samples in (1000, 4, 1):  # for each cell: all requests, one in two, one in eight
        monkeypatch.setattr(lba_picture, "_SAMPLES_PER_CELL", samples)
        found += pictures_of(tmp_path / str(samples), two_streams(200))
    assert found[0].binned
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_a_device_each_and_what_was_not_seen_to_complete(tmp_path: Path) -> None:
    builder = two_streams(1)
    builder.request([("data", "", None, KIB)], sector=5, device="sda", complete_ns=None)
    flash, disk = pictures_of(tmp_path, builder)
    assert (flash.device, disk.device) == ("flash0", "sda")
    assert disk.points["service_us"] == [0]
    assert disk.zones == ((5, 7),)


def test_flushes_alone_have_no_zone(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    builder.request([], operation="flush")
    [picture] = pictures_of(tmp_path, builder)
    assert (picture.zones, picture.points["sector"]) == ((), [])


def test_one_block_far_away_takes_no_room_from_the_rest(tmp_path: Path) -> None:
    builder = two_streams(100)
    builder.request([("fs-metadata", "", None, 4 * KIB)], sector=20_000)
    [picture] = pictures_of(tmp_path, builder)
    assert picture.zones == ((0, 800), (20_000, 20_008), (1_000_000, 1_001_600))


def test_a_picture_has_at_most_five_zones(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for place in range(12):
        builder.request([("data", "", None, 4 * KIB)], sector=8 * place + (1 << 3 * place))
    [picture] = pictures_of(tmp_path, builder)
    assert len(picture.zones) == 5
    for sector in picture.points["sector"]:
        assert any(first <= sector < end for first, end in picture.zones)


@pytest.mark.parametrize("operation", ["read", "write", "discard", "zeroes", "erase", "other"])
def test_every_operation_with_a_place_is_a_point(tmp_path: Path, operation: str) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    builder.request([("fs-metadata", "", None, 4 * KIB)], operation=operation, sector=8)
    [picture] = pictures_of(tmp_path, builder)
    assert [lba_picture.OPERATIONS[place] for place in picture.points["operation"]] == [operation]
