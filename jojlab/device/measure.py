"""Measures a live block device.

A `Probe` measures it as a benchmark does: requests of 512 KiB and 4 KiB by O_DIRECT, some of them
at once. It reads alone, unless writes are asked for. `measure_distributions` measures by fio how
long writes and flushes take, by size, kind and the idle time before. Writes destroy what the device
holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import mmap
import os
import random
import stat
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.tools import need_tool, run_tool

BLOCK = 4096
LARGE = 512 * 1024
DEPTH = 32
NS_PER_S = 1_000_000_000
_BLKROGET = 0x125E  # linux/fs.h


@dataclass(frozen=True)
class Effort:
    """The effort of a measurement: seconds of each figure, and the span of it in bytes."""

    seconds: float = 2.0
    span_bytes: int = 128 << 20


class Probe:
    """An open device. Use as a context; the seed fixes where random requests go."""

    def __init__(self, path: Path, *, write: bool, effort: Effort, seed: int = 1) -> None:
        """Open without the page cache; with `write` exclusively, so that nothing mounted is hit.

        Raises UseError when it is no block device (or plain file) or in use, MachineError when the
        machine refuses.
        """
        self.path, self.effort, self.random = path, effort, random.Random(seed)
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_DIRECT
        try:
            mode = path.stat().st_mode
            if not (stat.S_ISBLK(mode) or stat.S_ISREG(mode)):
                raise UseError(f"{path} is no block device", "name one: lsblk lists them")
            # On a block device O_EXCL alone fails while it is mounted or held (open(2)).
            exclusive = os.O_EXCL if write and stat.S_ISBLK(mode) else 0
            self.fd = os.open(path, flags | exclusive)
        except FileNotFoundError:
            raise UseError(f"{path} does not exist", "lsblk lists block devices") from None
        except PermissionError as error:
            raise MachineError(f"{path}: {error.strerror}", _permission_remedy()) from error
        except OSError as error:
            raise MachineError(
                f"{path} cannot be opened: {error.strerror}",
                "unmount it, and choose a device and filesystem that take O_DIRECT",
            ) from error
        if write and _read_only(self.fd, mode):
            os.close(self.fd)
            raise UseError(f"{path} is read-only", "leave --destroy-data out, or make it writable")
        self.size_bytes = os.lseek(self.fd, 0, os.SEEK_END)
        if self.size_bytes < 2 * LARGE:
            os.close(self.fd)
            raise UseError(f"{path} has {self.size_bytes} bytes", "name a device of 1 MiB or more")

    def __enter__(self) -> Probe:
        """Give the probe."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        os.close(self.fd)

    def reads(self) -> dict[str, int]:
        """Return the figures that reading tells."""
        return {
            "sequential_read_bytes_per_s": LARGE * self._rate(self._read, LARGE, 4, in_order=True),
            "random_read_iops": self._rate(self._read, BLOCK, DEPTH),
            "random_read_latency_ns": self._latency(self._read),
        }

    def writes(self) -> dict[str, int]:
        """Return the figures that writing tells. What the device holds is lost."""
        figures = {
            "sequential_write_bytes_per_s": LARGE
            * self._rate(self._write, LARGE, 4, in_order=True),
            "random_write_iops": self._rate(self._write, BLOCK, DEPTH),
        }
        os.fdatasync(self.fd)
        figures["random_write_latency_ns"] = self._latency(self._write)
        os.fdatasync(self.fd)
        figures["flush_empty_ns"] = self._median(lambda: None, lambda: os.fdatasync(self.fd))
        buffer = _buffer(BLOCK)
        figures["flush_dirty_ns"] = self._median(
            lambda: self._write(buffer, self._place(BLOCK)), lambda: os.fdatasync(self.fd)
        )
        return figures

    def _read(self, buffer: mmap.mmap, offset_bytes: int) -> None:
        os.preadv(self.fd, [buffer], offset_bytes)

    def _write(self, buffer: mmap.mmap, offset_bytes: int) -> None:
        os.pwritev(self.fd, [buffer], offset_bytes)

    def _place(self, length_bytes: int) -> int:
        span = min(self.effort.span_bytes, self.size_bytes)
        return self.random.randrange(span // length_bytes) * length_bytes

    def _rate(
        self,
        transfer: Callable[[mmap.mmap, int], None],
        length_bytes: int,
        depth: int,
        *,
        in_order: bool = False,
    ) -> int:
        """Requests a second, `depth` at once; each thread has one outstanding."""
        places = min(self.effort.span_bytes, self.size_bytes) // length_bytes
        order = itertools.count()
        begun_ns = time.monotonic_ns()
        until_ns = begun_ns + int(self.effort.seconds * NS_PER_S)

        def work(_: int) -> int:
            buffer, done = _buffer(length_bytes), 0
            while time.monotonic_ns() < until_ns:
                place = next(order) % places if in_order else self.random.randrange(places)
                transfer(buffer, place * length_bytes)
                done += 1
            return done

        with self._request_errors(), ThreadPoolExecutor(depth) as threads:
            done = sum(threads.map(work, range(depth)))
        return max(1, done * NS_PER_S // (time.monotonic_ns() - begun_ns))

    @contextlib.contextmanager
    def _request_errors(self) -> Iterator[None]:
        """Turn the OSError of a request into a MachineError."""
        try:
            yield
        except OSError as error:
            raise MachineError(f"{self.path}: {error.strerror}", "see dmesg") from error

    def _latency(self, transfer: Callable[[mmap.mmap, int], None]) -> int:
        buffer = _buffer(BLOCK)
        return self._median(lambda: None, lambda: transfer(buffer, self._place(BLOCK)))

    def _median(self, prepare: Callable[[], None], measured: Callable[[], None]) -> int:
        """Median time of `measured` in ns, `prepare` before each."""
        times: list[int] = []
        until_ns = time.monotonic_ns() + int(self.effort.seconds * NS_PER_S)
        while not times or (time.monotonic_ns() < until_ns and len(times) < 10_000):
            prepare()
            begun_ns = time.monotonic_ns()
            with self._request_errors():
                measured()
            times.append(time.monotonic_ns() - begun_ns)
        return max(1, int(statistics.median(times)))


def _buffer(length_bytes: int) -> mmap.mmap:
    """Memory that O_DIRECT takes: whole pages, filled with what does not compress to nothing."""
    buffer = mmap.mmap(-1, length_bytes)
    buffer.write(random.Random(length_bytes).randbytes(length_bytes))
    return buffer


def _read_only(fd: int, mode: int) -> bool:
    """Return whether the kernel refuses writes, though it lets the device be opened for them."""
    if not stat.S_ISBLK(mode):
        return False
    answer = fcntl.ioctl(fd, _BLKROGET, bytes(4))
    return any(answer)


def _permission_remedy() -> str:
    if os.geteuid():
        return "run it as root"
    return "root is refused too: a container's device rules, or the kernel's lockdown, forbid it"


SIZES_BYTES = (4096, 16384, 131072)
GAPS_US = (0, 5_000, 100_000)
PERCENTILES = (50, 90, 95, 99, 99.9)
# fio's options: a write; a write and a flush after it (fdatasync of a block device), of which the
# flush is timed; a write with RWF_DSYNC, which is FUA where the device has it.
KINDS: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "flush": ("--fdatasync=1",),
    "fua": ("--sync=dsync",),
}
# A device that takes so much longer after an idle time has slept.
_SLEPT = 1.5


@dataclass(frozen=True)
class Distribution:
    """The times of a kind of operation, in ns; `percentiles` are in the order of PERCENTILES, and
    None where there were too few operations for one to be longer.
    """

    size_bytes: int
    kind: str
    gap_us: int
    operations: int
    mean_ns: float
    percentiles_ns: tuple[int | None, ...]
    longest_ns: int

    @property
    def median_ns(self) -> int:
        """Half of the operations took no longer; of a single one, its time."""
        return self.percentiles_ns[0] or self.longest_ns


def measure_distributions(
    device: Path, seconds: float, next_is: Callable[[str], None] = lambda _: None
) -> list[Distribution]:
    """Return the distribution of every size, kind and gap, each measured for `seconds`.

    Random places of the whole device, one operation at a time. `next_is` is told what is measured.
    Raises MachineError when fio is missing or fails.
    """
    fio = str(need_tool("fio", "fio"))
    found = []
    for kind, options in KINDS.items():
        for size_bytes in SIZES_BYTES:
            for gap_us in GAPS_US:
                next_is(f"{kind}, {size_bytes} bytes, {gap_us} us idle before")
                command = _command(fio, device, seconds, size_bytes, gap_us)
                text = run_tool([*command, *options], f"measure {device}")
                found.append(read_answer(text, size_bytes, kind, gap_us))
    return found


def _command(fio: str, device: Path, seconds: float, size_bytes: int, gap_us: int) -> list[str]:
    return [
        fio,
        "--name=joj",
        f"--filename={device}",
        "--ioengine=psync",
        "--direct=1",
        "--rw=randwrite",
        "--randseed=1",
        "--size=100%",
        f"--bs={size_bytes}",
        "--time_based",
        f"--runtime={max(1, round(seconds))}",
        *([f"--thinktime={gap_us}", "--thinktime_blocks=1"] if gap_us else []),
        "--output-format=json",
        f"--percentile_list={':'.join(map(str, PERCENTILES))}",
    ]


def read_answer(text: str, size_bytes: int, kind: str, gap_us: int) -> Distribution:
    """Return what fio's JSON says; MachineError where it is not what fio 3 prints."""
    try:
        job = json.loads(text[text.index("{") :])["jobs"][0]
        times: dict[str, Any] = (
            job["sync"]["lat_ns"] if kind == "flush" else job["write"]["clat_ns"]
        )
        by_percentile = {float(name): int(value) for name, value in times["percentile"].items()}
        operations = int(times["N"])
        return Distribution(
            size_bytes,
            kind,
            gap_us,
            operations,
            float(times["mean"]),
            tuple(
                by_percentile[float(percentile)]
                if operations * round(100 - percentile, 3) >= 100
                else None
                for percentile in PERCENTILES
            ),
            int(times["max"]),
        )
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise MachineError(
            f"fio's answer for {kind} of {size_bytes} bytes is not understood: {error}",
            "install fio 3, and raise --seconds where no operation ended",
        ) from error


def mechanisms(distributions: Sequence[Distribution]) -> dict[str, int]:
    """Return keys of a profile that the distributions tell: a tail of flushes, and a sleep.

    Of flushes after a write of 4 KiB: a tenth takes longer than the 90th percentile, half of that
    longer than the 95th. A sleep: writes after an idle time take longer than after a shorter one;
    writes without any are left out, as a device may still be busy with the one before.
    """
    keys: dict[str, int] = {}
    of = {(row.kind, row.gap_us): row for row in distributions if row.size_bytes == SIZES_BYTES[0]}
    flush = of["flush", 0]
    tail_ns = (flush.percentiles_ns[PERCENTILES.index(95)] or 0) - flush.median_ns
    if tail_ns > 0:
        keys |= {"flush_tail_permille": 100, "flush_tail_ns": min(tail_ns, 10**9)}
    for shorter, longer in itertools.pairwise(GAPS_US[1:]):
        awake, slept = of["plain", shorter].median_ns, of["plain", longer].median_ns
        if slept > _SLEPT * awake:
            keys |= {"sleep_after_ns": shorter * 1000, "wake_up_ns": slept - awake}
            break
    return keys
