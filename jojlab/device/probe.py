"""Measures a live block device as a benchmark does: requests of 512 KiB and 4 KiB by O_DIRECT,
some of them at once. Reads alone, unless writes are asked for, which destroy what the device holds.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import random
import stat
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import MachineError, UseError

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
        done = [0] * depth
        failures: list[OSError] = []
        order = iter(range(1 << 62))
        begun_ns = time.monotonic_ns()
        until_ns = begun_ns + int(self.effort.seconds * NS_PER_S)

        def work(number: int) -> None:
            buffer = _buffer(length_bytes)
            try:
                while time.monotonic_ns() < until_ns:
                    place = next(order) % places if in_order else self.random.randrange(places)
                    transfer(buffer, place * length_bytes)
                    done[number] += 1
            except OSError as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(depth)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise MachineError(f"{self.path}: {failures[0].strerror}", "see dmesg")
        return max(1, sum(done) * NS_PER_S // (time.monotonic_ns() - begun_ns))

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
            try:
                measured()
            except OSError as error:
                raise MachineError(f"{self.path}: {error.strerror}", "see dmesg") from error
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
