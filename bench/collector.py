"""Measures what `joj-agent collect` takes of a machine: processor, memory, and bytes that it
writes.

fio makes random 4 KiB writes on ext4 on a loop device over memory, 1,000 and 20,000 a second. Then
one program creates, writes and deletes files with names that never come again, on the traced
filesystem and on one that is not traced, while segments are made and sent to a server. At last
nothing but the collector writes: what its disk counts then, divided by the segments, is what a
segment costs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from bench.bpf import timed_runs
from bench.loop_device import MEMORY, loop_device, new_ext4
from bench.process_memory import Memory, memory_of
from bench.watchers import WatchCost
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import fleet_files
from jojlab.fleet.study.engines import DuckDbEngine
from jojlab.foundation.places import agent_path
from tests.fleet.fleet_server import FleetServer, token_of

DEVICE_BYTES = 768 << 20
FILE_BYTES = 256 << 20
RATES = (1_000, 20_000)
# Of a core at 1,000 I/Os a second; of memory; of the bytes that are observed.
GOAL_SHARE, GOAL_BYTES, GOAL_WRITTEN = 0.01, 128 << 20, 0.01
# What a phone writes in a day, and its segments of half an hour (joj fleet simulate).
DAY_BYTES, DAY_SEGMENTS, SEGMENT_BYTES = 740_000_000, 48, 28_000
# Longer than the filesystem waits with what nobody syncs, as a deletion (ext4: 5 s).
ALONE_SEGMENTS, ALONE_SECONDS = 6, 12
IDLE_SECONDS = 4.0
SYNCED = 50  # of so many files one is synced, so that its name is that of a request
READY_SECONDS = 60.0
LOOK_SECONDS = 0.002
NAMES_SEGMENT_SECONDS = 20

# DIRECTORY COUNT SYNCED
NAMES = """
import os, sys
folder, count, synced = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    path = f"{folder}/a-file-whose-name-is-there-once-{number:012}.tmp"
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(file, b"x")
    if number % synced == 0:
        os.fsync(file)
    os.close(file)
    os.unlink(path)
"""


@dataclass(frozen=True)
class Load:
    """One load: what was done a second, and what the collector takes of a core at the rate that
    was asked for.

    `process_share` has the closing of the segment in it. What both take without the load, as
    everybody's calls on files are seen, is left out.
    """

    rate: float
    bpf_share: float
    process_share: float
    lost: int
    memory: Memory

    @property
    def share(self) -> float:
        """Return the share of one core, altogether."""
        return self.bpf_share + self.process_share


@dataclass(frozen=True)
class NameLoad:
    """The cost of the names of many files, and what became of the segments."""

    memory: Memory
    segments: int
    lost: int


@dataclass(frozen=True)
class SegmentWrites:
    """A segment, and what it makes its disk write when nobody else writes there."""

    segments: int
    segment_bytes: float
    disk_bytes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.collector", description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="of each rate [5]")
    parser.add_argument("--seconds", type=float, default=10, help="of load in a turn [10]")
    parser.add_argument("--names", type=int, default=2_000_000, help="of files, on each filesystem")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args(arguments)
    tools = ("fio", "losetup", "mkfs.ext4")
    if missing := [tool for tool in tools if not shutil.which(tool)]:
        print(f"bench.collector: {', '.join(missing)} not installed", file=sys.stderr)
        return 3
    if os.geteuid() != 0:
        print("bench.collector: needs root", file=sys.stderr)
        return 3
    loads: dict[int, list[Load]] = {rate: [] for rate in RATES}
    with loop_device(DEVICE_BYTES) as device, new_ext4(device) as directory, timed_runs():
        for turn in range(asked.turns):
            for rate in RATES:
                print(f"{rate:,} I/Os a second, turn {turn + 1}", file=sys.stderr)
                loads[rate].append(_measure_load(device, directory, rate, asked.seconds))
        print(f"{2 * asked.names:,} names", file=sys.stderr)
        names_load = _measure_names(device, directory, asked.names)
        print("nothing but the collector", file=sys.stderr)
        written = _segment_writes(device, directory)
    medians = {rate: _median(each) for rate, each in loads.items()}
    _print(medians, names_load, written, asked.names, as_json=asked.json)
    return 0 if all(met for _, met in goals(medians, names_load, written)) else 1


def goals(
    loads: dict[int, Load], names_load: NameLoad, written: SegmentWrites
) -> list[tuple[str, bool]]:
    """Each goal with what was reached, and whether it is met."""
    light = loads[RATES[0]]
    # The loads have no uploader: it is that of the names.
    most = [names_load.memory, *(load.memory for load in loads.values())]
    whole = max(
        replace(each, uploader_bytes=names_load.memory.uploader_bytes).whole_bytes for each in most
    )
    # The rest is what the filesystem adds, and the number of the next segment.
    each = written.disk_bytes - written.segment_bytes + SEGMENT_BYTES
    share = each * DAY_SEGMENTS / DAY_BYTES
    return [
        (f"of a core at {RATES[0]:,} I/Os a second: {light.share:.2%}, goal {GOAL_SHARE:.0%}",
         light.share <= GOAL_SHARE),
        (f"memory under any load: {whole / 2**20:.0f} MiB, goal {GOAL_BYTES >> 20} MiB",
         whole <= GOAL_BYTES),
        (f"of a phone's {DAY_BYTES / 1e6:.0f} MB a day in {DAY_SEGMENTS} segments: {share:.2%}, "
         f"goal {GOAL_WRITTEN:.0%}", share <= GOAL_WRITTEN),
    ]  # fmt: skip


def _median(loads: Sequence[Load]) -> Load:
    return Load(
        statistics.median(each.rate for each in loads),
        statistics.median(each.bpf_share for each in loads),
        statistics.median(each.process_share for each in loads),
        sum(each.lost for each in loads),
        reduce(Memory.largest, (each.memory for each in loads)),
    )


class Collector:
    """A collector that runs; what it took is known when it has ended."""

    def __init__(self, process: subprocess.Popen[bytes], spool: Path) -> None:
        self.pid = process.pid
        self.spool = spool
        self._process = process
        self.whole_ns = 0.0
        self.memory = Memory()
        self.segments: list[dict[str, Any]] = []

    def process_ns(self) -> float:
        """Processor time of all its threads up to now."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(float(path.read_text().split()[0]) for path in tasks)

    def end(self) -> None:
        """End it in order, and read what it collected."""
        self.memory = memory_of(self.pid)
        self._process.send_signal(signal.SIGTERM)
        # It holds most while it closes its last segment.
        while (ended := os.wait4(self.pid, os.WNOHANG))[0] == 0:
            self.memory = self.memory.largest(memory_of(self.pid))
            time.sleep(LOOK_SECONDS)
        _, status, usage = ended
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.whole_ns = (usage.ru_utime + usage.ru_stime) * 1e9
        for path in sorted((self.spool / "ready").iterdir()):
            with tarfile.open(path) as archive:
                member = archive.extractfile("segments.parquet")
                assert member is not None
                self.segments += pq.read_table(io.BytesIO(member.read())).to_pylist()


@contextlib.contextmanager
def _collecting(device: str, spool: Path, *options: str) -> Iterator[Collector]:
    """A collector of the device, ended with the block."""
    with TemporaryDirectory(prefix="joj-", dir=MEMORY) as folder:
        log = Path(folder) / "log"
        command = [str(agent_path()), "collect", "--device", device, "--spool", str(spool)]
        with log.open("wb") as said:
            process = subprocess.Popen([*command, *options], stderr=said)
        collector = Collector(process, spool)
        try:
            deadline = time.monotonic() + READY_SECONDS
            while b": collecting " not in log.read_bytes():
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"bench.collector: {log.read_text()}")
                time.sleep(0.05)
            yield collector
        finally:
            if process.returncode is None:
                collector.end()
            shutil.rmtree(spool)


def _measure_load(device: str, directory: Path, rate: int, seconds: float) -> Load:
    with _collecting(device, directory / "spool") as collector:
        before_ns = collector.process_ns()
        time.sleep(IDLE_SECONDS)
        idle_share = (collector.process_ns() - before_ns) / IDLE_SECONDS / 1e9
        watched = WatchCost(pid=collector.pid)
        watched.begin()
        before_ns, began = collector.process_ns(), time.monotonic()
        count = _fio(directory, rate, seconds)
        wall_ns = (time.monotonic() - began) * 1e9
        watched.measure()
        collector.end()
    bpf_ns = sum(runs.time_ns for runs in watched.programs.values())
    process_ns = collector.whole_ns - before_ns - idle_share * wall_ns
    lost = sum(int(row["lost_events"]) for row in collector.segments)
    scale = rate / 1e9 / count  # a busy machine makes fewer than were asked for
    shares = (bpf_ns * scale, process_ns * scale)
    return Load(count / wall_ns * 1e9, *shares, lost, collector.memory)


def _fio(directory: Path, rate: int, seconds: float) -> int:
    """Write at this rate; return how many I/Os were made."""
    command = [
        "fio", "--name=load", f"--filename={directory / 'load'}", f"--size={FILE_BYTES}",
        "--rw=randwrite", "--bs=4k", "--direct=1", "--ioengine=io_uring", "--iodepth=4",
        "--time_based", f"--runtime={seconds}", f"--rate_iops={rate}", "--randseed=1",
        "--fallocate=posix", "--output-format=json",
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(json.loads(answer[answer.index("{") :])["jobs"][0]["write"]["total_ios"])


def _measure_names(device: str, directory: Path, count: int) -> NameLoad:
    """Many names on the traced filesystem, and as many on one of memory; segments are sent."""
    with TemporaryDirectory(prefix="joj-", dir=MEMORY) as folder:
        untraced, data, token = (Path(folder) / name for name in ("files", "data", "token"))
        untraced.mkdir()
        token.write_text(token_of(str(data), "bench"))
        with FleetServer(str(data)) as server:
            options = ["--server", server.url, "--token-file", str(token)]
            options += ["--segment-seconds", str(NAMES_SEGMENT_SECONDS)]
            with _collecting(device, directory / "spool", *options) as collector:
                for place in (directory, untraced):
                    command = [sys.executable, "-c", NAMES, str(place), str(count), str(SYNCED)]
                    subprocess.run(command, check=True)
                collector.end()
            dataset = DuckDbEngine(fleet_files(open_store(str(data))))
            sent = dataset.rows("SELECT lost_events FROM segments")
    lost = sum(int(row["lost_events"]) for row in [*collector.segments, *sent])
    return NameLoad(collector.memory, len(sent), lost)


def _segment_writes(device: str, directory: Path) -> SegmentWrites:
    """Segments of some seconds, each deleted when it is there, as if it had been sent."""
    spool = directory / "spool"
    with _collecting(device, spool, "--segment-seconds", str(ALONE_SECONDS)):
        count = size = 0
        before = after = 0
        sent: set[Path] = set()
        while count <= ALONE_SEGMENTS:
            time.sleep(0.1)
            ready = sorted(set((spool / "ready").iterdir()) - sent)
            for path in ready:
                size += path.stat().st_size if count else 0
                count += 1
                path.unlink()
                sent.add(path)
            if ready and count == 1:
                before = _disk_written(device, directory)
        after = _disk_written(device, directory)
    return SegmentWrites(count - 1, size / (count - 1), (after - before) / (count - 1))


def _disk_written(device: str, directory: Path) -> int:
    """Return what the disk counts as written, after all of its filesystem is."""
    subprocess.run(["sync", "--file-system", str(directory)], check=True)
    sectors = Path(f"/sys/class/block/{Path(device).name}/stat").read_text().split()[6]
    return int(sectors) * 512


def _print(
    loads: dict[int, Load],
    names_load: NameLoad,
    written: SegmentWrites,
    names: int,
    *,
    as_json: bool,
) -> None:
    reached = [{"goal": text, "met": met} for text, met in goals(loads, names_load, written)]
    if as_json:
        print(json.dumps({
            "loads": [asdict(load) for load in loads.values()], "named": asdict(names_load),
            "written": asdict(written), "goals": reached,
        }, indent=1))  # fmt: skip
        return
    print(f"{'I/Os a s':>10} {'of a core':>10} {'BPF':>8} {'process':>8} {'lost':>6}  memory")
    for load in loads.values():
        print(f"{load.rate:>10,.0f} {load.share:>10.2%} {load.bpf_share:>8.2%} "
              f"{load.process_share:>8.2%} {load.lost:>6}  {_memory(load.memory)}")  # fmt: skip
    print(f"{2 * names:,} names, {names_load.segments} segments sent, {names_load.lost} events "
          f"lost: {_memory(names_load.memory)}")  # fmt: skip
    print(
        f"a segment of {written.segment_bytes / 1e3:.1f} kB makes the disk write "
        f"{written.disk_bytes / 1e3:.1f} kB ({written.segments} segments)"
    )
    for goal in reached:
        print(f"{'met   ' if goal['met'] else 'missed'} {goal['goal']}")


def _memory(memory: Memory) -> str:
    mib = {name: value / 2**20 for name, value in vars(memory).items()}
    return (
        f"{memory.whole_bytes / 2**20:.1f} MiB: collector {mib['collector_bytes']:.1f}, uploader "
        f"{mib['uploader_bytes']:.1f}, BPF maps {mib['map_bytes']:.1f}, of which "
        f"{mib['mapped_bytes']:.1f} are in the collector's"
    )


if __name__ == "__main__":
    sys.exit(main())
