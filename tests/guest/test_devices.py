"""Tests what real captures tell of modelled devices: every profile runs, the NAND's bytes add up,
an aged device collects garbage, and one too large for the guest is refused.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.campaign.jobs import case_json
from jojlab.device.profile import BLOCK, read_profile
from jojlab.experiment.cases import Case, complete
from jojlab.foundation.cache import Cache
from jojlab.foundation.places import DEVICES
from jojlab.guest.image.build import Image
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case


def counters(cache: Cache, image: Image, out: Path, device: str, **changes: int) -> dict[str, int]:
    """Return what the device counted over a small case; the capture is complete."""
    record = complete({"transactions": 31, "device": device})
    profile = read_profile(device)
    profile = replace(profile, model={**profile.model, **changes})
    case = case_json(Case("case", record), 1, {device: profile})
    run_case(cache, image, case, profile.icount_shift, out)
    capture = Capture.open(out)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    return {
        row["name"]: row["value"]
        for row in capture.read("counters").to_pylist()
        if row["phase"] == "all" and row["source"] == "device"
    }


BLOCK_DEVICES = [
    name
    for name in sorted(path.stem for path in DEVICES.glob("*.toml"))
    if read_profile(name).interface == BLOCK
]


@pytest.mark.parametrize("device", BLOCK_DEVICES)
def test_every_device_runs_and_its_nand_bytes_add_up(
    cache: Cache, image: Image, tmp_path: Path, device: str
) -> None:
    counted = counters(cache, image, tmp_path / "out", device)
    programs = sum(counted[f"{cause}_programs"] for cause in ("host", "gc", "mapping", "wear"))
    model = read_profile(device).model
    assert counted["nand_write_bytes"] == programs * model["program_unit_bytes"]
    left_the_cache = sum(
        counted[name]
        for name in ("host_programmed_bytes", "cache_overwritten_bytes", "cache_discarded_bytes")
    )
    assert counted["mapped_write_bytes"] == left_the_cache + counted["dirty_bytes"]
    assert counted["mapped_write_bytes"] >= counted["write_bytes"] > 0
    # With power-loss protection the kernel has nothing to flush, without a cache neither.
    volatile = model["cache_bytes"] > 0 and not model["power_loss_protection"]
    assert (counted["flush_requests"] > 0) == volatile


@pytest.mark.full
def test_an_aged_device_collects_garbage_and_the_same_again(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    fresh = counters(cache, image, tmp_path / "fresh", "emmc-galaxy-s3")
    assert fresh["gc_programs"] == fresh["gc_erases"] == 0
    ageing = {"preload_percent": 95, "overwrite_percent": 100}
    aged = counters(cache, image, tmp_path / "aged", "emmc-galaxy-s3", **ageing)
    assert aged["gc_programs"] > 0
    assert aged["nand_write_bytes"] > fresh["nand_write_bytes"]
    assert aged["busy_ns"] > fresh["busy_ns"]


def test_a_device_too_large_for_the_guest_is_refused_by_name(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    case = json.loads(real_case())
    case["device_model"]["capacity_bytes"] = 1 << 39
    with pytest.raises(Exception, match="capacity_bytes is 549755813888: its mapping tables take"):
        run_case(cache, image, json.dumps(case).encode(), 0, tmp_path / "out")
