"""Several requests with a device at once, packed writes, and a dispatch thread for each of two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.trace.capture import Capture
from tests.guest.conftest import CHECKOUT, real_case
from tests.guest.jobs import run_case
from tests.guest.test_completion import WAYS, device_counters

# That the thread polls is in test_completion.py, and below for two disks.
OFTEN_WAYS = [pytest.param(way, marks=[pytest.mark.full] * (way == "polling")) for way in WAYS]
EIGHT = {"workload": "file-write", "threads": 8, "transactions": 41, "file_bytes": 1 << 20}


def capture_case(cache: Cache, image: Image, out: Path, settings: dict[str, Any]) -> Capture:
    run_case(cache, image, real_case(**settings), 0, out)
    capture = Capture.open(out)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    assert device_counters(out)["failed_requests"] == 0
    return capture


def most_at_once(capture: Capture, device: str = "flash0") -> int:
    """Return how many requests of a device were issued and not complete at one time."""
    changes = []
    for row in capture.read("requests").to_pylist():
        if row["device"] == device:
            # What completes as another is issued was not beside it.
            changes += [(row["issue_ns"], 1), (row["complete_ns"], -1)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


@pytest.mark.parametrize("way", OFTEN_WAYS)
def test_ufs_has_several_at_once_and_an_old_emmc_one(
    cache: Cache, image: Image, tmp_path: Path, way: str
) -> None:
    settings = {**EIGHT, "completion": way}
    ufs = capture_case(cache, image, tmp_path / "ufs", {**settings, "device": "ufs-3.1"})
    emmc = capture_case(cache, image, tmp_path / "emmc", settings)
    assert most_at_once(ufs) > 1
    assert most_at_once(emmc) == 1


@pytest.mark.parametrize("way", OFTEN_WAYS)
def test_packed_writes_go_to_the_device_as_one(
    cache: Cache, image: Image, tmp_path: Path, way: str
) -> None:
    text = (CHECKOUT / "devices" / "emmc-galaxy-s3.toml").read_text()
    text = text.replace('name = "emmc-galaxy-s3"', 'name = "packing"')
    packing = tmp_path / "packing.toml"
    packing.write_text(text.replace("\npacked_writes = 1\n", "\npacked_writes = 8\n"))
    settings = {**EIGHT, "completion": way}
    one = capture_case(cache, image, tmp_path / "one", settings)
    packed = capture_case(cache, image, tmp_path / "packed", {**settings, "device": str(packing)})
    assert device_counters(one.folder)["packed_requests"] == 0
    assert device_counters(packed.folder)["packed_requests"] > 0
    assert 1 < most_at_once(packed) <= 8
    assert one.manifest["operation_hash"] == packed.manifest["operation_hash"]


@pytest.mark.parametrize(("filesystem", "way"), [("ext4", "interrupt"), ("xfs", "polling")])
def test_each_of_two_disks_has_a_dispatch_thread(
    cache: Cache, image: Image, tmp_path: Path, filesystem: str, way: str
) -> None:
    settings = {"filesystem": filesystem, "journal_device": "emmc-galaxy-s3", "completion": way}
    capture = capture_case(cache, image, tmp_path / "two", {**settings, "device": "ufs-3.1"})
    journal = [r for r in capture.read("requests").to_pylist() if r["device"] == "flash1"]
    assert journal
    assert all(row["complete_ns"] > row["issue_ns"] for row in journal)
    assert most_at_once(capture, "flash1") == 1
