"""UBIFS on raw NAND: every byte of a commit has an owner, operations take as long as the data sheet
says and are what the module counted, flipping NAND and power cuts lose nothing that was synced,
what NAND cannot correct is an error where UBIFS looks at checksums of data, and a worn part says
that it is and what it has.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.image.build import RAW_NAND, Image, ready_image
from jojlab.lab.job import Kind
from jojlab.lab.power_cuts import merge_answers, power_cuts
from jojlab.model.fields import RAW_NAND_DEVICE
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import case_job, run_case, run_job

PROFILE = read_profile(RAW_NAND_DEVICE)
STATES = 24


@pytest.fixture(scope="module")
def nand_image(cache: Cache) -> Image:
    return ready_image(cache, RAW_NAND)


@pytest.mark.full
def test_every_operation_has_an_owner_a_place_and_the_time_of_the_data_sheet(
    cache: Cache, nand_image: Image, tmp_path: Path
) -> None:
    record = real_case(filesystem="ubifs", transactions=40, mount_options="noatime,compr=none")
    run_case(cache, nand_image, record, PROFILE.icount_shift, tmp_path)
    capture = Capture.open(tmp_path)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]

    stated = {row.figure: row.value for row in PROFILE.stated}
    whole_ns = {
        "program": stated["page_program_latency_ns"],
        "read": stated["page_read_latency_ns"],
        "erase": stated["block_erase_latency_ns"],
    }
    requests = capture.read("requests").to_pylist()
    operations = capture.read("flash_operations").to_pylist()
    assert [row["request_id"] for row in operations] == [row["request_id"] for row in requests]
    seen = set()
    for request, operation in zip(requests, operations, strict=True):
        is_whole = operation["length_bytes"] >= PROFILE.model["page_bytes"]
        if is_whole:
            took_ns = request["complete_ns"] - request["issue_ns"]
            assert took_ns == pytest.approx(whole_ns[operation["kind"]], rel=0.1)
            seen.add(operation["kind"])
        assert operation["outcome"] == "done"
    assert "program" in seen

    runs = capture.read("page_runs").to_pylist()
    assert {run["block_type"] for run in runs} == {"data", "fs-metadata", "fs-journal"}
    names = {row["file_id"]: row["path"] for row in capture.read("files").to_pylist()}
    data = {names[run["file_id"]] for run in runs if run["block_type"] == "data"}
    assert data == {"/main.db", "/main.db-journal"}
    bytes_of = dict.fromkeys((row["request_id"] for row in requests), 0)
    for run in runs:
        bytes_of[run["request_id"]] += run["length_bytes"]
    assert bytes_of == {row["request_id"]: row["length_bytes"] for row in requests}


def device_counters(capture: Capture) -> dict[str, int]:
    """Return what the device counted in a whole run, which is complete."""
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    return {
        row["name"]: row["value"]
        for row in capture.read("counters").to_pylist()
        if row["phase"] == "all" and row["source"] == "device"
    }


@pytest.mark.full
def test_bad_blocks_and_flipping_bits_lose_nothing(
    cache: Cache, nand_image: Image, tmp_path: Path
) -> None:
    changes = {"factory_bad_blocks": 20, "flipped_reads_per_million": 50000, "error_seed": 7}
    fields = {f"device.{key}": value for key, value in changes.items()}
    record = real_case(filesystem="ubifs", workload="sqlite-update", transactions=30, **fields)
    run_case(cache, nand_image, record, PROFILE.icount_shift, tmp_path)
    counted = device_counters(Capture.open(tmp_path))
    assert counted["uncorrectable_reads"] == counted["failed_programs"] == 0


def test_read_disturbed_blocks_are_moved_and_operations_take_their_time(
    cache: Cache, nand_image: Image, tmp_path: Path
) -> None:
    changes = {"capacity_bytes": 16 << 20, "read_disturb_reads": 150, "error_seed": 7}
    record = real_case(
        filesystem="ubifs", workload="file-passes", file_bytes=1 << 20, record_bytes=16384,
        mount_options="noatime,compr=none",
        **{f"device.{key}": value for key, value in changes.items()},
    )  # fmt: skip
    run_case(cache, nand_image, record, PROFILE.icount_shift, tmp_path)  # looks at all contents
    capture = Capture.open(tmp_path)
    counted = device_counters(capture)
    assert counted["corrected_reads"] > 0
    assert counted["uncorrectable_reads"] == 0

    operations = capture.read("flash_operations").to_pylist()
    assert any(row["cause"] == "wear-levelling" and row["flipped_bits"] for row in operations)
    stated = {row.figure: row.value for row in PROFILE.stated}
    asked = {  # as mtd_speedtest measures: a whole page, or block, after the other
        "read": ("page_read_latency_ns", PROFILE.model["page_bytes"]),
        "program": ("page_program_latency_ns", PROFILE.model["page_bytes"]),
        "erase": ("block_erase_latency_ns", 0),
    }
    requests = capture.read("requests").to_pylist()
    for kind, (figure, length_bytes) in asked.items():
        took_ns = [
            request["complete_ns"] - request["issue_ns"]
            for request, operation in zip(requests, operations, strict=True)
            if operation["kind"] == kind and operation["length_bytes"] >= length_bytes
        ]
        assert took_ns, kind
        assert sum(took_ns) / len(took_ns) == pytest.approx(stated[figure], rel=0.1), kind


def test_power_cuts_lose_nothing_that_was_synced(
    cache: Cache, nand_image: Image, tmp_path: Path
) -> None:
    small = {"device.capacity_bytes": 16 << 20}
    record = real_case(filesystem="ubifs", transactions=6, sync_call="fsync", **small)
    case = case_job(nand_image, record, PROFILE.icount_shift)
    [job] = power_cuts(case, STATES)
    found = merge_answers([run_job(cache, job, tmp_path).answer(Kind.POWER_CUTS)])
    assert STATES - 3 <= len(found["states"]) <= STATES
    assert {"torn", "second"} <= set(found["by_kind"])
    assert {state["outcome"] for state in found["states"]} == {"kept"}, found["states"]


def test_a_part_that_wears_out_says_so_and_has_what_had_returned(
    cache: Cache, nand_image: Image, tmp_path: Path
) -> None:
    worn = {"device.capacity_bytes": 16 << 20, "device.endurance_erases": 1}
    record = real_case(filesystem="ubifs", transactions=4000, **worn)
    with pytest.raises(GuestError) as told:
        run_case(cache, nand_image, record, PROFILE.icount_shift, tmp_path)
    words = re.search(
        r"raw NAND only be read from now on: (\d+) of its blocks are bad, .*"
        r"Mounted again, it has every one of the (\d+) transactions that returned",
        str(told.value),
    )
    assert words, told.value
    assert int(words[1]) > 0
    assert 0 < int(words[2]) < 4000


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("chk_data_crc", "pread.*os error"),
        pytest.param("no_chk_data_crc", "other bytes", marks=pytest.mark.full),
    ],
)
def test_uncorrectable_pages_are_errors_where_ubifs_checks_data(
    cache: Cache, nand_image: Image, tmp_path: Path, option: str, told: str
) -> None:
    # Two bits of each page flip long before UBI has moved the block, and the code corrects one.
    disturbed = {"device.capacity_bytes": 16 << 20, "device.read_disturb_reads": 20}
    record = real_case(
        filesystem="ubifs", workload="file-passes", file_bytes=1 << 20, record_bytes=16384,
        mount_options=f"noatime,compr=none,{option}", **disturbed,
    )  # fmt: skip
    with pytest.raises(GuestError, match=told):
        run_case(cache, nand_image, record, PROFILE.icount_shift, tmp_path)
