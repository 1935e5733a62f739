"""Measures how long writes of a live block device take, and how long its flushes: distributions by
size, kind and idle time before, by fio. What the device holds is lost.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import MachineError
from jojlab.foundation.tools import need_tool, run_tool

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
