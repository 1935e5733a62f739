"""The allocators of UBI's and UBIFS's buffers: each case has the memory that it asks for, the
memory model counts it, and a controller that needs contiguous memory would copy what lies in
memory of vmalloc. Downloads the source of the kernel, once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import CHOSEN_BUFFERS, Image, ready_image
from jojlab.guest.memory_model import CORES
from jojlab.lab.memory_run import modelled_job, read_modelled
from jojlab.model.fields import RAW_NAND_DEVICE
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import case_job, run_job

SHIFT = read_profile(RAW_NAND_DEVICE).icount_shift
BUFFERS = {"peb_buf", "sbuf", "ileb_buf", "lpt_buf", "orph_buf"}
# docs.kernel.org, x86/x86_64/mm: the direct map and the area of vmalloc.
DIRECT, VMALLOC = 0xFFFF888000000000, 0xFFFFC90000000000


@pytest.fixture(scope="module")
def own_build(cache: Cache) -> Image:
    return ready_image(cache, CHOSEN_BUFFERS)


def _run(
    cache: Cache, image: Image, ubi: str, ubifs: str, folder: Path
) -> tuple[Capture, dict[str, tuple[int, int]]]:
    record = real_case(
        filesystem="ubifs", workload="file-passes", file_bytes=1 << 20, record_bytes=65536,
        ubi_allocator=ubi, ubifs_allocator=ubifs, **{"device.capacity_bytes": 16 << 20},
    )  # fmt: skip
    job = case_job(image, record, SHIFT)
    plain = run_job(cache, job, folder / "plain")
    counted = read_modelled(
        plain, run_job(cache, modelled_job(job, plain, CORES["arm11"]), folder / "modelled")
    )
    touched = {
        name: (
            sum(part.buffers[name].loads for part in counted.values()),
            sum(part.buffers[name].stores for part in counted.values()),
        )
        for name in BUFFERS
    }
    capture = Capture.open(folder / "plain")
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    reads = [counted[name] for name in ("read-pass", "random-read-pass")]
    assert all(not each.loads for part in reads for each in part.buffers.values())
    return capture, touched


def _bounced_bytes(capture: Capture) -> int:
    rows = capture.read("counters").to_pylist()
    return sum(
        row["value"]
        for row in rows
        if row["phase"] == "all" and row["name"] in ("bounced_read_bytes", "bounced_write_bytes")
    )


def test_each_case_has_its_memory_and_what_touches_it_is_counted(
    cache: Cache, own_build: Image, tmp_path: Path
) -> None:
    for ubi, ubifs in (("vmalloc", "vmalloc"), ("kmem_cache", "kmalloc")):
        capture, touched = _run(cache, own_build, ubi, ubifs, tmp_path / ubi)
        configuration = capture.manifest["configuration"]
        buffers = {each["name"]: each for each in configuration["buffers"]}
        assert set(buffers) == BUFFERS
        for name, buffer in buffers.items():
            is_direct = "vmalloc" not in (ubi if name == "peb_buf" else ubifs)
            at = int(buffer["address"], 16)
            assert (DIRECT <= at < VMALLOC) == is_direct
            # Memory of vmalloc may be in one stretch too, by chance.
            assert buffer["physical_stretches"] == 1 or not is_direct
        # UBIFS scans its log into sbuf when it mounts, and writes properties of blocks by lpt_buf.
        assert touched["sbuf"][0] > 0
        assert touched["lpt_buf"][0] > 0
        # Nothing else uses ileb_buf than the kernel, which zeroes memory as it allocates it
        # (CONFIG_INIT_ON_ALLOC_DEFAULT_ON), eight bytes a store; that of vmalloc page by page, at
        # the pages' other address.
        zeroed = buffers["ileb_buf"]["length_bytes"] // 8 if ubifs == "kmalloc" else 0
        assert touched["ileb_buf"] == (0, zeroed)
        assert (_bounced_bytes(capture) > 0) == (ubifs == "vmalloc")
        assert configuration["nand_before"]["write_bytes"] > 0
