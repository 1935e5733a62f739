"""Every kernel of kernels/, downloaded and built for: the tracer loads, gives no byte to the wrong
file of five filesystems and leaves none unknown, a case repeats to the byte, and a direct read has
its place in its file. It loads where the kernel has no module of a filesystem too.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.places import KERNELS
from jojlab.guest.image.build import RAW_NAND, ready_image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.model.filesystems import BLOCK_FILESYSTEMS
from jojlab.trace.capture import Capture
from tests.full.own_init import console_of
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case
from tests.guest.test_verify import right

NAMES = sorted(path.stem for path in KERNELS.glob("*.toml"))


@pytest.mark.parametrize("filesystem", BLOCK_FILESYSTEMS)
@pytest.mark.parametrize("kernel", NAMES)
def test_no_byte_is_of_the_wrong_file(kernel: str, filesystem: str) -> None:
    assert right(filesystem, kernel=kernel).counts["checked_bytes"] > 900_000


@pytest.mark.parametrize("filesystem", BLOCK_FILESYSTEMS)
@pytest.mark.parametrize("kernel", NAMES)
def test_a_case_repeats_to_the_byte_and_nothing_is_lost(
    cache: Cache, tmp_path: Path, kernel: str, filesystem: str
) -> None:
    image, both = ready_image(cache, kernel=kernel), []
    record = real_case(filesystem=filesystem, journal_mode="wal")
    for out in (tmp_path / "first", tmp_path / "second"):
        run_case(cache, image, record, 0, out, use_cached=False)
        both.append({path.name: path.read_bytes() for path in out.iterdir()})
        capture = Capture.open(out)
        assert not capture.is_incomplete, (capture.lost_events, capture.unattributed_bytes)
    assert both[0]
    assert both[0] == both[1]


@pytest.mark.parametrize("kernel", ["6.12", "7"])
def test_nothing_of_raw_nand_is_missed(cache: Cache, tmp_path: Path, kernel: str) -> None:
    # UBI erases in the background, and may do so when tracing begins.
    image = ready_image(cache, RAW_NAND, kernel)
    run_case(cache, image, real_case(filesystem="ubifs", transactions=40), 1, tmp_path)
    capture = Capture.open(tmp_path)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]


@pytest.mark.parametrize("engine", ["calls", "io_uring"])
@pytest.mark.parametrize("kernel", NAMES)
def test_a_direct_read_has_its_file_and_its_place(
    cache: Cache, tmp_path: Path, kernel: str, engine: str
) -> None:
    image = ready_image(cache, kernel=kernel)
    record = real_case(
        filesystem="ext4",
        workload="file-read",
        read_mode="o_direct",
        engine=engine,
        transactions=37,
    )
    run_case(cache, image, record, 0, tmp_path)
    capture = Capture.open(tmp_path)
    assert not capture.is_incomplete, (capture.lost_events, capture.unattributed_bytes)
    requests = pyarrow.parquet.read_table(tmp_path / "requests.parquet").to_pylist()
    places = [
        row["file_offset_bytes"]
        for row in requests
        if (row["operation"], row["block_type"], row["phase"]) == ("read", "data", "commit")
    ]
    assert len(places) == 37
    assert None not in places
    assert len(set(places)) > 30


@pytest.mark.parametrize("kernel", [INSTALLED, *NAMES])
def test_the_tracer_loads_where_no_module_of_a_filesystem_is_loaded(
    cache: Cache, agent: Path, tmp_path: Path, kernel: str
) -> None:
    """Types of a module are unknown then, as on a machine that has nothing on Btrfs."""
    image = ready_image(cache, kernel=kernel)
    console = console_of("doctor_init.c", agent, image.kernel, tmp_path)
    assert "can     trace, collect, verify: the tracer is loaded" in console, console[-3000:]
    assert "can     trace, collect: the finder of commits is loaded" in console
    assert "can     record --by ebpf: the recorder is loaded" in console


def test_threads_that_lose_the_processor_lose_no_io(cache: Cache, tmp_path: Path) -> None:
    """Linux 7.3 takes it away within tracepoints, and skips the program there for other threads: of
    20,000 writes 732 had no owner while one program alone saw each event.
    """
    record = real_case(
        workload="file-write", sync_mode="o_direct", device="ufs-3.1", threads=8, transactions=2000
    )
    run_case(cache, ready_image(cache, kernel="7"), record, 0, tmp_path)
    capture = Capture.open(tmp_path)
    # All three programs may be at work when another comes; none did in 20,000 writes.
    assert capture.lost_events <= 1
    assert capture.unattributed_bytes <= 4096
