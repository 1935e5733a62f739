"""The count of an NVMe disk of its own, read of the disk that QEMU emulates."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pyarrow.parquet

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import DRIVERS, ready_image
from tests.full.own_init import console_of

WRITTEN_BYTES = 64 << 20
UNIT_BYTES = 512_000  # of Data Units Written, which a disk rounds up


def test_a_live_trace_has_what_the_disk_itself_counted(
    cache: Cache, agent: Path, tmp_path: Path
) -> None:
    # With RDRAND: nothing else in this guest makes the kernel's random numbers ready.
    options = ["-cpu", "max"]
    for name in ("first", "second"):
        with (tmp_path / name).open("wb") as disk:
            disk.truncate(2 * WRITTEN_BYTES)
        options += ["-drive", f"file={tmp_path / name},format=raw,if=none,id={name}"]
        options += ["-device", f"nvme,drive={name},serial={name}"]
    kernel = ready_image(cache, DRIVERS).kernel
    modules = kernel.parent / "modules"
    console = console_of("nvme_init.c", agent, kernel, tmp_path, modules, tuple(options))
    size = re.search(r"counters\.parquet: (\d+) bytes", console)
    assert size, console[-3000:]
    table = io.BytesIO((tmp_path / "second").read_bytes()[: int(size[1])])
    counted = {
        row["name"]: row["value"]
        for row in pyarrow.parquet.read_table(table).to_pylist()
        if row["source"] == "device"
    }
    assert abs(counted["lifetime_write_bytes"] - WRITTEN_BYTES) <= UNIT_BYTES, counted
    assert counted["write_bytes"] == WRITTEN_BYTES, counted
