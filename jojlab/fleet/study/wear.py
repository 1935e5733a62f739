"""How much of its flash does each app wear out in a year? An estimate by bytes.

A device's flash takes its capacity times the erases that a block endures, if wear is levelled over
all of it. What an app writes costs that many bytes times the write amplification, which a real
device does not report: 1 is the least that it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jojlab.analysis.commit.flash_life import CYCLES, DAYS_A_YEAR
from jojlab.fleet.study.dataset import Row


@dataclass(frozen=True)
class AppWear:
    """Of one process, as means of a device and day on which the fleet was observed.

    `life_a_year` is the share of a flash's life that a year of it takes; None where no capacity is
    known. `sync_share` is that of its write requests.
    """

    process: str
    devices: int
    daily_bytes: float
    daily_requests: float
    sync_share: float
    life_a_year: float | None


def wear(coverage: Sequence[Row], app_writes: Sequence[Row], amplification: float) -> list[AppWear]:
    """Return every process, those that write most first."""
    known = {row["device"]: row for row in coverage}
    device_days = sum(int(row["days"]) for row in coverage)
    rows: dict[str, list[Row]] = {}
    for row in app_writes:
        rows.setdefault(row["process"], []).append(row)
    found = []
    for process, own in rows.items():
        requests = sum(row["requests"] for row in own)
        lives = [
            row["write_bytes"] * amplification / (disk * CYCLES)
            for row in own
            if (disk := known[row["device"]]["disk_bytes"])
        ]
        found.append(
            AppWear(
                process,
                len(own),
                sum(row["write_bytes"] for row in own) / device_days,
                requests / device_days,
                sum(row["sync_requests"] for row in own) / requests if requests else 0.0,
                sum(lives) / device_days * DAYS_A_YEAR if len(lives) == len(own) else None,
            )
        )
    return sorted(found, key=lambda each: (-each.daily_bytes, each.process))
