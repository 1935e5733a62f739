"""Tests what a commit wears out, with counters that are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.analysis.commit.bill import Bill, bill_json, commit_bills
from jojlab.analysis.commit.flash_life import BillLineWrites, FlashLife, charge, years
from jojlab.report.bill import life_sentences
from jojlab.trace.dataset import Dataset
from tests.captures import run_of, truncate_capture

KIB = 1024
# Of 10 commits that send 68 KiB each and flush twice, and one block of 4 KiB at the end: units of
# 16 KiB, 50 of the host's, 20 of the mapping table, 5 of garbage collection.
COUNTERS = {
    "nand_write_bytes": 75 * 16 * KIB,
    "host_programmed_bytes": 684 * KIB,
    "host_programs": 50,
    "mapping_programs": 20,
    "gc_programs": 5,
    "gc_erases": 2,
}


def bill_of(folder: Path, counters: dict[str, int], capacity_bytes: int) -> Bill:
    builder = truncate_capture({"filesystem": "ext4", "journal_mode": "truncate"}, 1, 10)
    builder.more_manifest = {"device": {"name": "x", "model": {"capacity_bytes": capacity_bytes}}}
    for name, value in counters.items():
        row = {"phase": "all", "source": "device", "name": name, "value": value}
        builder.tables["counters"].append(row)
    return commit_bills(Dataset.from_runs(run_of(folder, builder)))["a"]


def test_programs_are_told_by_reason_and_charged_whole(tmp_path: Path) -> None:
    life = bill_of(tmp_path, COUNTERS, 1 << 30).life
    assert life is not None
    assert {reason: size for reason, size in life.programmed.items() if size} == {
        "data": 684 * KIB,
        "padding": (800 - 684) * KIB,
        "mapping table": 320 * KIB,
        "garbage collection": 80 * KIB,
    }
    assert (life.programmed_bytes, life.erases) == (COUNTERS["nand_write_bytes"], 2)
    assert sum(each.bytes for each in life.charged) == pytest.approx(life.programmed_bytes)
    # Two flushes a commit, one for each of two calls: half of mapping and padding to either.
    flushes = [each for each in life.charged if each.block_type == "flush"]
    assert [each.bytes for each in flushes] == [pytest.approx(218 * KIB)] * 2


def test_raw_nand_programs_what_it_is_given_and_counts_its_erases(tmp_path: Path) -> None:
    # The capture has a counter write_bytes of its own: what the ten commits and the end send.
    life = bill_of(tmp_path, {"erase_requests": 3}, 1 << 29).life
    assert life is not None
    assert (dict(life.programmed), life.erases) == ({"data": 684 * KIB}, 3)
    assert sum(each.bytes for each in life.charged) == pytest.approx(684 * KIB)


def test_copies_are_charged_by_bytes_and_the_table_by_flushes() -> None:
    life = FlashLife(100, {"data": 100, "garbage collection": 100, "mapping table": 60}, 0, 1)
    lines = [BillLineWrites("data", "/a", "", 75, 0), BillLineWrites("data", "/b", "", 25, 0)]
    charged = charge(life, [*lines, BillLineWrites("flush", "", "fsync of a", 0, 3)]).charged
    assert [(each.file or each.cause, each.bytes) for each in charged] == [
        ("/a", 150),
        ("fsync of a", 60),
        ("/b", 50),
    ]
    assert [each.bytes for each in charge(life, lines).charged] == [195, 65]


def test_flash_lasts_for_its_cycles_at_so_many_commits_a_day() -> None:
    assert years(1000, 1000, 365_250_000, 1) == 1
    assert years(0, 1000, 1, 1) == float("inf")


def test_the_flash_s_share_of_a_bill_is_told_in_sentences_and_as_json(tmp_path: Path) -> None:
    bill = bill_of(tmp_path, COUNTERS, 1 << 30)
    flash, charged, life = life_sentences(bill)
    assert flash == (
        "on the flash, with warm-up and settling: 120 KiB programmed for 68.4 KiB that were sent: "
        "68.4 KiB data, 32 KiB mapping table, 8 KiB garbage collection, 11.6 KiB padding; 0.2 "
        "blocks erased"
    )
    assert charged.startswith("charged to: ")
    assert "to flush, fdatasync of test.db" in charged
    assert life.startswith("life: 7.177 years at 10,000 commits a day, if the 1 GiB")
    found = bill_json(bill)["flash"]
    assert sum(found["programmed_bytes"].values()) == 120 * KIB
    assert sum(each["bytes"] for each in found["charged"]) == pytest.approx(120 * KIB)


def test_a_device_that_counts_nothing_has_none(tmp_path: Path) -> None:
    assert bill_of(tmp_path, {}, 1 << 30).life is None
    assert bill_of(tmp_path / "raw", {"nand_write_bytes": 2048}, 1 << 30).life is None
    assert bill_json(bill_of(tmp_path / "b", {}, 0))["flash"] is None
