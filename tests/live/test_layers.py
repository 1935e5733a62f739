"""Disks that are not whole disks with requests: a partition, and a driver that takes bios."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.tracing import Bench, read, run, temporary_bench

EXT4 = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 DISK"
ZRAM = Path("/sys/class/zram-control")

# 20000 bytes are five pages.
WRITES = """
f = os.open("a", os.O_CREAT | os.O_RDWR); os.write(f, b"x" * 20000); os.fsync(f)
d = os.open("d", os.O_CREAT | os.O_RDWR | os.O_SYNC); os.write(d, b"d" * 4096)
os.unlink("d"); os.sync()
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


@pytest.fixture
def zram(tmp_path: Path) -> Iterator[Bench]:
    """A disk in memory whose driver takes bios."""
    try:
        number = (ZRAM / "hot_add").read_text().strip()
    except OSError as error:
        pytest.skip(f"no zram: {error}")
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(600 << 20))
        with temporary_bench(tmp_path) as bench:
            bench.disk = f"/dev/zram{number}"
            yield bench
    finally:
        (ZRAM / "hot_remove").write_text(number)


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_each_bio_of_a_driver_that_takes_bios_is_a_request(zram: Bench, filesystem: str) -> None:
    zram.make(EXT4 if filesystem == "ext4" else f"mkfs.{filesystem} -q -f DISK")
    traced = zram.trace(WRITES)
    assert traced.bytes(block_type="data", file="/a") == 20480
    assert traced.bytes(block_type="data", file="/d") == 4096
    assert {row["asker_call"] for row in traced.written_runs(file="/d")} == {"O_SYNC write"}
    assert traced.bytes(block_type="fs-journal") > 0
    for row in traced.requests:
        assert f"/dev/{row['device']}" == zram.disk
        assert row["bio_count"] == 1
        assert row["queue_ns"] == row["issue_ns"] <= row["complete_ns"]


def test_a_partition_stands_for_its_disk(bench: Bench) -> None:
    begin = 2048 * 5
    disk = bench.loop(700, "--partscan")
    # A table of one entry, as Debian 13 has no addpart(8).
    entry = struct.pack("<B3xB3xII", 0, 0x83, begin, 620 << 11)
    Path(disk).write_bytes(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    run("partx", "--add", disk)
    bench.disk = f"{disk}p1"
    bench.make(EXT4)
    traced = bench.trace(WRITES)
    assert {f"/dev/{row['device']}" for row in traced.requests} == {disk}
    assert traced.bytes(block_type="data", file="/a") == 20480
    # "0: 0.. 39: FIRST.. LAST: 40: ...", in sectors of the partition.
    table = run("filefrag", "-v", "-b512", bench.directory / "a")
    first = int(re.findall(r"^ *0: .*?: *(\d+)\.\.", table, re.M)[0])
    [row] = traced.written_runs(block_type="data", file="/a")
    assert row["sector"] == begin + first
    # What the journal copies lies on the partition too.
    homes = [row["home_sector"] for row in traced.written_runs(block_subtype="copy")]
    assert homes
    assert all(begin <= home < begin + (620 << 11) for home in homes)


def test_a_disk_without_requests_that_goes_away_is_told_and_what_was_seen_is_kept(
    zram: Bench,
) -> None:
    tables = zram.folder / "tables"
    work = (
        f"dd if=/dev/zero of={zram.disk} bs=4096 count=7 oflag=direct status=none; "
        f"echo 1 > /sys/block/{Path(zram.disk).name}/reset"
    )
    command = [str(zram.agent), "trace", "--device", zram.disk, "--output", str(tables)]
    answer = subprocess.run(
        [*command, "--", "sh", "-c", work], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 4, answer.stderr
    assert "went away or became another while it was traced" in answer.stderr
    assert read(tables).bytes(block_type="data", block_subtype="raw-device") == 7 * 4096


def test_a_disk_without_requests_says_so(zram: Bench) -> None:
    command = [str(zram.agent), "trace", "--device", zram.disk, "--duration", "0.1"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "a driver without requests" in answer.stderr
