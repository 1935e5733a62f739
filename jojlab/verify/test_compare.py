"""Tests of comparing a disk with the tables, and of verdicts."""

from __future__ import annotations

from typing import Any

from jojlab.model.disk_map import DiskMap, Fact, Stretches
from jojlab.verify.compare import COLUMNS, Addresses, Verdict, compare


def disk_map() -> DiskMap:
    exact, areas = Stretches(), Stretches()
    exact.add_bytes(4096, 8192, Fact(("data",), (), 12, 0))
    exact.add_bytes(16384, 4096, Fact(("fs-metadata",), ("inode-table",)))
    areas.add_bytes(0, 1 << 20, Fact(("data", "fs-metadata")))
    return DiskMap(("tool",), exact, areas)


def writer(sector: int, sectors: int, **other: Any) -> dict[str, Any]:
    row = {"block_type": "data", "block_subtype": "", "inode": 12, "file_offset_bytes": 0}
    place = {"begin_bytes": sector * 512, "length_bytes": sectors * 512}
    return {**place, "path": "/a", **row, **other}


def compare_writers(*writers: dict[str, Any]) -> Addresses:
    return compare(disk_map(), writers)


TABLE = {"block_type": "fs-metadata", "inode": None, "file_offset_bytes": None}


def test_agreeing_bytes_are_counted() -> None:
    table = writer(32, 8, block_subtype="inode-table", **TABLE)
    free = writer(64, 8, inode=99, file_offset_bytes=None)
    outside = writer(1 << 20, 2)
    result = compare_writers(writer(8, 16), table, free, outside)
    assert not result.wrong
    assert result.checked_bytes == 24 * 512
    assert (result.superseded_bytes, result.unmentioned_bytes) == (8 * 512, 2 * 512)


def test_each_disagreement_is_wrong() -> None:
    assert len(compare_writers(writer(8, 16, inode=13)).wrong) == 16
    assert len(compare_writers(writer(8, 16, file_offset_bytes=512)).wrong) == 16
    assert len(compare_writers(writer(16, 8)).wrong) == 8  # its offset is 4096
    assert len(compare_writers(writer(8, 1, inode=None)).wrong) == 1
    assert len(compare_writers(writer(8, 1, **TABLE)).wrong) == 1
    assert len(compare_writers(writer(32, 8)).wrong) == 8
    assert len(compare_writers(writer(32, 8, block_subtype="block-bitmap", **TABLE)).wrong) == 8
    assert len(compare_writers(writer(64, 8, block_type="fs-journal")).wrong) == 8
    [line] = compare_writers(writer(8, 1, inode=13)).wrong
    assert line == "sector 8 is data of inode 12 at 0, but the tables say data of inode 13 at 0"


def test_swap_lies_in_a_file() -> None:
    swap = {"block_type": "swap", "inode": None, "file_offset_bytes": None}
    assert not compare_writers(writer(8, 8, **swap)).wrong
    assert len(compare_writers(writer(32, 8, **swap)).wrong) == 8


FOUND = {
    **dict.fromkeys(COLUMNS[1:12], 0),
    "bytes": 8192,
    "reasons": [],
    "complaints": [],
    "did": ["buffered", "direct"],
    "left_out": {},
}


def test_a_clean_verdict_is_neither_wrong_nor_incomplete() -> None:
    verdict = Verdict.from_answer("ext4", FOUND)
    assert not verdict.is_wrong
    assert not verdict.is_incomplete
    assert verdict.row()["bytes"] == 8192


def test_a_verdict_names_steps_that_were_done_and_left_out() -> None:
    refused = {"swapped": "swapon: Invalid argument (os error 22)"}
    verdict = Verdict.from_answer("nilfs2", {**FOUND, "left_out": refused})
    assert verdict.row()["did"] == ("buffered", "direct")
    assert verdict.row()["left_out"] == refused
    assert not verdict.is_incomplete


def test_each_count_that_matters_shows() -> None:
    for name in ("misattributed_bytes", "missing_bytes", "wrong_asker_requests"):
        assert Verdict.from_answer("ext4", {**FOUND, name: 512}).is_wrong
    for name in ("unknown_bytes", "askerless_requests", "lost_events"):
        assert Verdict.from_answer("ext4", {**FOUND, name: 1}).is_incomplete
    assert Verdict.from_answer("ext4", {**FOUND, "reasons": ["1 flush"]}).is_incomplete
    moved = Verdict.from_answer("ext4", FOUND).with_addresses(
        Addresses(wrong=("sector 8 is data",))
    )
    assert moved.is_wrong
    assert moved.complaints == ("sector 8 is data",)
    assert moved.row()["address_wrong_bytes"] == 512
