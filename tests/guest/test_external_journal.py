"""A journal on a device of its own: made, mounted, traced, attributed and counted on both disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case

DATA, JOURNAL = "flash0", "flash1"


@pytest.mark.parametrize("filesystem", ["ext4", "xfs"])
def test_the_journal_s_requests_go_to_its_device_and_are_known(
    cache: Cache, image: Image, tmp_path: Path, filesystem: str
) -> None:
    case = real_case(
        filesystem=filesystem, device="sd-card", journal_device="emmc-galaxy-s3", transactions=7
    )
    run_case(cache, image, case, 0, tmp_path / "out")
    capture = Capture.open(tmp_path / "out")
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    requests = capture.read("requests").to_pylist()
    written = {
        (row["device"], row["block_type"]) for row in requests if row["operation"] == "write"
    }
    assert (DATA, "data") in written
    assert (JOURNAL, "fs-journal") in written
    assert {kind for disk, kind in written if disk == JOURNAL} == {"fs-journal"}
    assert (DATA, "fs-journal") not in written
    counted = {
        row["source"]: row["value"]
        for row in capture.read("counters").to_pylist()
        if row["phase"] == "all" and row["name"] == "write_requests"
    }
    for source, disk in (("device", DATA), ("journal-device", JOURNAL)):
        traced = [r for r in requests if r["device"] == disk and r["operation"] == "write"]
        assert counted[source] == len(traced) > 0


@pytest.mark.full
def test_ext4_takes_fast_commit_and_xfs_a_larger_log(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    for filesystem, options in (("ext4", "-O fast_commit"), ("xfs", "-l size=256m")):
        case = real_case(filesystem=filesystem, mkfs_options=options, sync_call="fdatasync")
        run_case(cache, image, case, 0, tmp_path / filesystem)
        capture = Capture.open(tmp_path / filesystem)
        assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
