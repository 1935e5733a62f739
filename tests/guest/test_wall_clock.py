"""The guest by the clock on the wall: disks of three drivers, engines of files, the self-test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jojlab.campaign.jobs import case_json
from jojlab.device.profile import EMULATED
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, UseError
from jojlab.foundation.places import agent_path
from jojlab.guest.image.build import DRIVERS, Image, build_image
from jojlab.model.field import Value
from jojlab.trace.capture import Capture
from jojlab.verify.attribution import verify_in_lab
from tests.guest.conftest import real_case, release
from tests.guest.jobs import run_by_wall_clock, run_case

OPERATIONS = 100  # of which half read
RECORD_BYTES = 4096
# Past the page cache, one operation at a time, on a file that is there whole.
FILE: dict[str, Value] = {
    "workload": "file-write",
    "sync_mode": "o_direct",
    "read_percent": 50,
    "transactions": OPERATIONS,
    "warmup_transactions": 0,
    "file_bytes": 1 << 20,
}


@pytest.fixture(scope="module")
def wall_image(cache: Cache) -> Image:
    return build_image(cache, agent_path(), None, DRIVERS)


def case_on(device: str, **settings: Value) -> bytes:
    record = complete({**FILE, "device": device, **settings})
    return case_json(Case("case", record), 1, {})


def run_on(cache: Cache, image: Image, out: Path, device: str, **settings: Value) -> Capture:
    outcome = run_by_wall_clock(cache, image, case_on(device, **settings), device, out)
    assert not outcome.from_cache
    capture = Capture.open(out)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    assert capture.manifest["clock"] == "guest-wall"
    assert capture.manifest["configuration"]["clock_source"] == "tsc"
    return capture


def count_device(capture: Capture, name: str) -> int:
    """Increase of a counter of the device over the measured operations."""
    rows = capture.read("counters").to_pylist()
    found = [r["value"] for r in rows if (r["phase"], r["source"]) == ("commit", "device")
             and r["name"] == name]  # fmt: skip
    assert len(found) == 1, name
    return int(found[0])


@pytest.mark.full
@pytest.mark.parametrize("engine", ["io_uring", "io_uring_polled"])
def test_a_ring_makes_one_request_an_operation(
    cache: Cache, wall_image: Image, tmp_path: Path, engine: str
) -> None:
    capture = run_on(cache, wall_image, tmp_path, "qemu-nvme", engine=engine)
    files = {row["file_id"]: row["path"] for row in capture.read("files").to_pylist()}
    of_file = [
        row
        for row in capture.read("requests").to_pylist()
        if row["phase"] == "commit" and files.get(row["file_id"]) == "/data"
    ]
    for operation in ("read", "write"):
        lengths = [row["length_bytes"] for row in of_file if row["operation"] == operation]
        assert lengths == [RECORD_BYTES] * (OPERATIONS // 2), operation
        assert count_device(capture, f"{operation}_bytes") >= OPERATIONS // 2 * RECORD_BYTES
    kinds = [row["kind"] for row in capture.read("transactions").to_pylist()]
    assert len(kinds) == OPERATIONS
    # The queue for polling has no interrupt; the file's times may be written by another queue.
    interrupts, of_operations = (
        count_device(capture, "interrupts"),
        count_interrupts(wall_image, engine),
    )
    assert interrupts >= of_operations
    assert engine == "io_uring" or interrupts < of_operations + OPERATIONS / 4


def count_interrupts(image: Image, engine: str) -> int:
    """Return how many of the operations end by an interrupt.

    From Linux 6.6 to 6.18 iomap takes the mark of polling off every write: of the two ways to
    complete that keep it, a write has none (iomap_dio_bio_iter(), fs/iomap/direct-io.c). Linux 6.19
    gave it one ("iomap: support write completions from interrupt context").
    """
    if engine == "io_uring":
        return OPERATIONS
    return OPERATIONS // 2 if (6, 6) <= release(image) < (6, 19) else 0


def test_a_device_without_queues_for_polling_is_refused(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    polled: dict[str, Any] = {**FILE, "engine": "io_uring_polled"}
    with pytest.raises(UseError, match=r"no queue for polling.*nvme\.poll_queues=1"):
        run_case(cache, image, real_case(**polled), 0, tmp_path / "flash")


@pytest.mark.full
def test_sqlite_runs_and_nothing_is_kept(cache: Cache, wall_image: Image, tmp_path: Path) -> None:
    device = "qemu-scsi"
    settings: dict[str, Value] = {"device": device, "transactions": 7}
    record = case_json(Case("case", complete(settings)), 1, {})
    kept = list(cache.folder("results").iterdir())
    outcome = run_by_wall_clock(cache, wall_image, record, device, tmp_path / "out")
    assert "requests.parquet" in outcome.files
    capture = Capture.open(tmp_path / "out")
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    names = {row["device"] for row in capture.read("requests").to_pylist()}
    assert names == {EMULATED[device].disk}
    assert list(cache.folder("results").iterdir()) == kept
    assert list(cache.folder("work").iterdir()) == []


@pytest.mark.full  # the agent waits 10 s for it
def test_a_disk_that_is_not_there_is_named(cache: Cache, wall_image: Image, tmp_path: Path) -> None:
    case = json.loads(case_on("qemu-scsi"))
    case["disk"] = "nvme0n1"
    with pytest.raises(GuestError, match="/dev/nvme0n1 did not appear"):
        run_by_wall_clock(cache, wall_image, json.dumps(case).encode(), "qemu-scsi", tmp_path)


# Each boots its own guest. Partitions by both ways to name them, nvme0n1p1 and sda1; a disk as a
# whole, and the slowest. NVMe takes several ranges of a discard at once: XFS discards together what
# one commit of its log freed, F2FS what one of its checkpoints did.
@pytest.mark.full
@pytest.mark.parametrize(
    ("filesystem", "device", "options", "has_ranges"),
    [
        ("ext4", "qemu-nvme", {"partition": True}, False),
        ("ext4", "qemu-scsi", {"partition": True}, False),
        ("xfs", "qemu-nvme", {"mount_options": "discard"}, True),
        ("f2fs", "qemu-nvme", {}, True),
        ("ext4", "qemu-nvme", {}, False),
        ("ext4", "qemu-sd", {"partition": True}, False),
    ],
)
def test_no_byte_is_of_the_wrong_file(
    filesystem: str, device: str, options: dict[str, Any], has_ranges: bool
) -> None:
    verdict = verify_in_lab(filesystem, device=device, **options)
    assert not verdict.is_wrong, verdict.complaints
    assert not verdict.is_incomplete, (verdict.complaints, verdict.reasons)
    assert verdict.counts["checked_bytes"] > 900_000
    assert ("several ranges discarded" in verdict.did) == has_ranges
    assert {"overlay", "container"} <= set(verdict.did)
    if verdict.addresses.missing:
        pytest.skip(verdict.addresses.missing)
    assert verdict.addresses.unmentioned_bytes == 0
    assert verdict.addresses.checked_bytes > 900_000
