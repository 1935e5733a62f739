"""The driver's dispatch thread: however it waits for the device, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case

WAYS = ("direct", "interrupt", "polling")


@pytest.fixture(scope="module")
def captures(
    cache: Cache, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Each way's capture, of the same writes."""
    folder = tmp_path_factory.mktemp("completion")
    for way in WAYS:
        run(cache, image, way, folder / way)
    return {way: folder / way for way in WAYS}


def run(cache: Cache, image: Image, way: str, output: Path) -> None:
    """Run a few writes with fsync by two threads."""
    case = real_case(
        workload="file-write", completion=way, transactions=13, threads=2, file_bytes=65536
    )
    run_case(cache, image, case, 0, output)


def device_counters(path: Path, phase: str = "all") -> dict[str, int]:
    """Return what the device counted in a phase."""
    rows = Capture.open(path).read("counters").to_pylist()
    return {r["name"]: r["value"] for r in rows if (r["phase"], r["source"]) == (phase, "device")}


def test_nothing_is_lost_in_any_way(captures: dict[str, Path]) -> None:
    hashes = set()
    for path in captures.values():
        capture = Capture.open(path)
        assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
        assert device_counters(path)["failed_requests"] == 0
        requests = capture.read("requests").to_pylist()
        writes = [row for row in requests if row["operation"] == "write"]
        assert device_counters(path)["write_requests"] == len(writes) > 13
        assert all(row["complete_ns"] > row["issue_ns"] for row in requests)
        hashes.add(str(capture.manifest["operation_hash"]))
    assert len(hashes) == 1


def test_counters_follow_the_thread_that_waits_for_completions(captures: dict[str, Path]) -> None:
    counts = {way: device_counters(path) for way, path in captures.items()}
    requests = len(Capture.open(captures["interrupt"]).read("requests"))
    direct, interrupt, polling = (counts[way] for way in WAYS)
    assert direct["dispatch_cpu_ns"] == direct["dispatch_voluntary_switches"] == 0
    assert direct["completion_interrupts"] > 13
    assert interrupt["completion_interrupts"] >= requests > 0
    assert polling["completion_interrupts"] == 0
    assert polling["dispatch_voluntary_switches"] < interrupt["dispatch_voluntary_switches"]
    assert polling["dispatch_cpu_ns"] > interrupt["dispatch_cpu_ns"]


def test_polling_is_deterministic(
    cache: Cache, image: Image, tmp_path: Path, captures: dict[str, Path]
) -> None:
    run(cache, image, "polling", tmp_path / "again")
    for table in ("requests", "transactions", "counters"):
        again = (tmp_path / "again" / f"{table}.parquet").read_bytes()
        assert again == (captures["polling"] / f"{table}.parquet").read_bytes(), table
