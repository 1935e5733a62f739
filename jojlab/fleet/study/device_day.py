"""One day of one device: when it committed, to which files, by which apps, and what was dearest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from jojlab.fleet.study.dataset import (
    FleetEngine,
    LeftOutFile,
    Losses,
    Row,
    day_coverage,
    fleet_ask,
    losses,
    losses_json,
)
from jojlab.foundation.errors import DataError, UseError
from jojlab.foundation.printable import nearest, public_fields

DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class Dear:
    """One of the transactions that took longest. `time_ns` is its end, from local midnight.

    The bill, from `requests` on, is None where it could not be told.
    """

    time_ns: int
    duration_ns: int
    process: str
    kind: str
    journal_mode: str
    database: str
    super_journal: str | None
    databases: Sequence[str]
    sync_call: str
    sync_calls: int
    written_bytes: int
    requests: int | None
    database_bytes: int | None
    journal_bytes: int | None
    filesystem_bytes: int | None
    flushes: int | None


@dataclass(frozen=True)
class DeviceDay:
    """Rows are those of the questions day_...; ten minutes are counted from local midnight."""

    device: str
    day: str
    utc_offset_s: int
    losses: Losses
    segments: Sequence[Row]
    commits: Sequence[Row]
    dearest: Sequence[Dear]
    databases: Sequence[Row]
    files: Sequence[Row]
    io: Sequence[Row]
    # Files of the device, of any day, that cannot be read.
    left_out: Sequence[LeftOutFile] = ()

    @property
    def is_incomplete(self) -> bool:
        """Return whether something that was observed is not in the answers."""
        return self.losses.is_incomplete or bool(self.left_out)

    @property
    def commit_count(self) -> int:
        """Commits of the day; checkpoints are none."""
        return sum(int(row["commits"]) for row in self.commits)

    @property
    def multi_file(self) -> int:
        """Multi-file transactions among them."""
        return sum(int(row["commits"]) for row in self.commits if row["multi_file"])

    @property
    def unbilled_commits(self) -> int:
        """Commits of which it is not known what they made the device write."""
        return self.commit_count - sum(int(row["billed"]) for row in self.commits)


def device_day(
    engine: FleetEngine, device: str, day: str, left_out: Sequence[LeftOutFile] = ()
) -> DeviceDay:
    """Return the day; an empty `day` is the last one. Raises UseError where it is not there.

    Of the files that were left out, those of the device belong to its answers.
    """
    left_out = [each for each in left_out if each.device == device]
    days = [row["day"] for row in fleet_ask(engine, "observed_days", device=device)]
    if not days and left_out:
        first = left_out[0]
        raise DataError(
            f"{device}: none of its segments can be read: {first.file}: {first.why}",
            "restore the store",
        )
    if not days:
        known = [row["device"] for row in fleet_ask(engine, "coverage")]
        raise UseError(
            f"{device}: no such device has sent anything{nearest(device, known)}",
            "joj fleet devices lists them",
        )
    if day and day not in days:
        raise UseError(
            f"{device}: nothing was observed on {day}", f"its days: {days[0]} to {days[-1]}"
        )
    parameters = {"device": device, "day": day or days[-1]}
    segments = fleet_ask(engine, "day_segments", **parameters)
    offset_s = int(segments[-1]["utc_offset_s"])
    return DeviceDay(
        device=device,
        day=parameters["day"],
        utc_offset_s=offset_s,
        losses=losses([day_coverage(segments)]),
        segments=segments,
        commits=fleet_ask(engine, "day_commits", **parameters),
        dearest=[_dear(row, offset_s) for row in fleet_ask(engine, "day_dearest", **parameters)],
        databases=fleet_ask(engine, "day_databases", **parameters),
        files=fleet_ask(engine, "day_files", **parameters),
        io=fleet_ask(engine, "day_io", **parameters),
        left_out=left_out,
    )


def _dear(row: Row, offset_s: int) -> Dear:
    named = {name: row[name] for name in Dear.__dataclass_fields__ if name in row}
    time_ns = (row["end_unix_ns"] + offset_s * 10**9) % DAY_NS
    return Dear(**(named | {"time_ns": time_ns, "databases": _databases(row)}))


def _databases(row: Row) -> list[str]:
    """Return the databases of a transaction; what a device sent need not be a list."""
    if not row["databases"]:
        return [row["database"]]
    try:
        return msgspec.json.decode(row["databases"], type=list[str])
    except msgspec.DecodeError:
        return [row["databases"]]


def device_day_json(day: DeviceDay) -> dict[str, Any]:
    """Return the day as a script reads it."""
    return public_fields(day, commits="by_ten_minutes", io="writes_by_ten_minutes") | {
        "commits": day.commit_count,
        "multi_file_transactions": day.multi_file,
        "unbilled_commits": day.unbilled_commits,
        "losses": losses_json(day.losses),
    }
