"""The count of an NVMe disk of its own, read of the disk that QEMU emulates."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pyarrow.parquet

from jojlab.foundation.cache import Cache
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.image.ready import ready_wall_image
from tests.ended import HANG_S

WRITTEN_BYTES = 64 << 20
UNIT_BYTES = 512_000  # of Data Units Written, which a disk rounds up


def test_a_live_trace_has_what_the_disk_itself_counted(
    cache: Cache, agent: Path, tmp_path: Path
) -> None:
    program = tmp_path / "init"
    source = Path(__file__).with_name("nvme_init.c")
    subprocess.run(["cc", "-static", "-Wall", "-Werror", "-o", program, source], check=True)
    kernel = ready_wall_image(cache).kernel
    files = Initramfs()
    for folder in ("dev", "proc", "sys", "tmp", "modules"):
        files.add_folder(folder)
    for file in sorted((kernel.parent / "modules").iterdir()):
        files.add_file(f"modules/{file.name}", file.read_bytes())
    files.add_file("init", program.read_bytes(), executable=True)
    files.add_file("joj-agent", agent.read_bytes(), executable=True)
    (tmp_path / "initramfs").write_bytes(files.archive())
    disks = []
    for name in ("first", "second"):
        with (tmp_path / name).open("wb") as disk:
            disk.truncate(2 * WRITTEN_BYTES)
        disks += ["-drive", f"file={tmp_path / name},format=raw,if=none,id={name}"]
        disks += ["-device", f"nvme,drive={name},serial={name}"]
    console = subprocess.run(
        [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-m", "1024", "-nographic"),
            # With RDRAND: nothing else in this guest makes the kernel's random numbers ready.
            *("-cpu", "max"),
            *("-no-reboot", "-kernel", str(kernel), "-initrd", str(tmp_path / "initramfs")),
            *("-append", "console=ttyS0 quiet panic=-1", *disks),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S, check=False,
    ).stdout  # fmt: skip
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
