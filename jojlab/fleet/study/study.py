"""The answers about a fleet, from the rows of the questions: coverage, wear, files, shares,
settings.

Beside them stands Fig. 2 of Jeong et al., USENIX ATC'13 (Facebook and Twitter on a Galaxy S3), as
its text gives it; its counts are by request.

A device's flash takes its capacity times the erases that a block endures, if wear is levelled over
all of it. What an app writes costs that many bytes times the write amplification, which a real
device does not report: 1 is the least that it can be.

The bills are those of the cases of one run. The workload of that run stands for the fleet's
commits: what they change, and how much, is not known of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.analysis.commit.flash_life import CYCLES, DAYS_A_YEAR
from jojlab.analysis.run.summary import summarise
from jojlab.fleet.study.dataset import (
    FleetEngine,
    LeftOutFile,
    Losses,
    Row,
    fleet_ask,
    losses,
    losses_json,
)
from jojlab.foundation.cache import Cache
from jojlab.foundation.printable import public_fields
from jojlab.trace.run_folder import RunFolder

# The power of two that is next above a second, in milliseconds.
_SECOND_MS = 1024


@dataclass(frozen=True)
class FileAges:
    """Files of one kind. `forgotten` are created ones whose deletion would not have been counted.
    Of those that are gone and whose creation was seen: how many lived for less than 1.024 s, and
    the power of two above the age of the middle one, in milliseconds.
    """

    file_kind: str
    created: int
    deleted: int
    forgotten: int
    aged: int
    below_a_second: int
    median_below_ms: int | None


def file_ages(lives: Sequence[Row]) -> list[FileAges]:
    """Return every kind, those of which most files were created first."""
    found = []
    for kind in dict.fromkeys(row["file_kind"] for row in lives):
        own = [row for row in lives if row["file_kind"] == kind]
        deleted = [row for row in own if row["event"] == "deleted"]
        known = sorted(
            (row["lived_below_ms"], row["files"])
            for row in deleted
            if row["lived_below_ms"] is not None
        )
        count = sum(files for _, files in known)
        found.append(
            FileAges(
                kind,
                sum(row["files"] for row in own if row["event"] == "created"),
                sum(row["files"] for row in deleted),
                sum(row["files"] for row in own if row["event"] == "forgotten"),
                count,
                sum(files for below, files in known if below <= _SECOND_MS),
                _middle(known, count),
            )
        )
    return sorted(found, key=lambda each: (-each.created, each.file_kind))


def _middle(counts: Sequence[tuple[int, int]], count: int) -> int | None:
    seen = 0
    for below, files in counts:
        seen += files
        if 2 * seen >= count:
            return below
    return None


_SQLITE = {"db", "db-journal", "wal", "shm", "super-journal", "sqlite-temp"}


@dataclass(frozen=True)
class WriteShare:
    """A share of some requests, None where there are none; `published` is what was printed."""

    name: str
    share: float | None
    published: float


def write_shares(io_mix: Sequence[Row]) -> list[WriteShare]:
    """Return the shares that were published, of this fleet's writes."""
    writes = [row for row in io_mix if row["operation"] == "write"]
    data = [row for row in writes if row["block_type"] == "data"]
    return [
        _share("data writes to SQLite's files", data, _in_sqlite, 0.90),
        _share("writes of the filesystem's journal", writes, _requests_of("fs-journal"), 0.30),
        _share("writes of its metadata", writes, _requests_of("fs-metadata"), 0.10),
        _share("synchronous writes", writes, lambda row: int(row["sync_requests"]), 0.70),
        _share("random writes", writes, lambda row: int(row["random_requests"]), 0.75),
        _share("writes of 4 KiB or less", writes, lambda row: int(row["small_requests"]), 0.64),
    ]


def _in_sqlite(row: Row) -> int:
    return int(row["requests"]) if row["file_kind"] in _SQLITE else 0


def _requests_of(block_type: str) -> Callable[[Row], int]:
    return lambda row: int(row["requests"]) if row["block_type"] == block_type else 0


def _share(
    name: str, rows: Sequence[Row], count: Callable[[Row], int], published: float
) -> WriteShare:
    whole = sum(int(row["requests"]) for row in rows)
    return WriteShare(name, sum(map(count, rows)) / whole if whole else None, published)


@dataclass(frozen=True)
class AppWear:
    """The wear by one process, as means of a device and day on which the fleet was observed.

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


@dataclass(frozen=True)
class SettingCost:
    """A case of the run; times and bytes are those of a device's day of commits.

    `written_bytes` reach the device, deferred ones too; `nand_bytes` it programs; None where the
    run has no such figure.
    """

    label: str
    waited_ns: float | None
    written_bytes: float | None
    nand_bytes: float | None


def setting_costs(run: Path, daily_commits: float) -> list[SettingCost]:
    """Return every case of the run in its order; raises UseError where there is no run."""
    summary = summarise(RunFolder.open(run), cache=Cache.default())
    return [
        SettingCost(
            case.label or case.case_id,
            _daily(case.figures.median, daily_commits, "commit_latency_ns_p50"),
            _daily(case.figures.median, daily_commits, "bytes_per_commit"),
            _daily(case.figures.median, daily_commits, "nand_bytes_per_commit"),
        )
        for case in summary.measured_cases
    ]  # fmt: skip


def _daily(figures: Mapping[str, float | None], daily_commits: float, name: str) -> float | None:
    """Return a figure of a commit, for all commits of a day."""
    value = figures.get(name)
    return None if value is None else value * daily_commits


@dataclass(frozen=True)
class FleetStudy:
    """Rows are those of the questions of the same name; a user is a device."""

    coverage: Sequence[Row]
    losses: Losses
    reasons: Sequence[Row]
    users: Sequence[Row]
    multi_file_apps: Sequence[Row]
    io_mix: Sequence[Row]
    shares: Sequence[WriteShare]
    hours: Sequence[Row]
    apps: Sequence[AppWear]
    files: Sequence[Row]
    ages: Sequence[FileAges]
    commits: Sequence[Row]
    databases: Sequence[Row]
    amplification: float
    settings: Sequence[SettingCost] = ()
    # Devices that may send, and of which no segment is there.
    silent: Sequence[str] = ()
    # Devices of which days are there that have not come yet.
    ahead: Sequence[str] = ()
    # Files that cannot be read; none of their segments is in the answers.
    left_out: Sequence[LeftOutFile] = ()

    @property
    def is_incomplete(self) -> bool:
        """Return whether something that was observed is not in the answers."""
        return self.losses.is_incomplete or bool(self.left_out)

    @property
    def device_days(self) -> int:
        """Days that were observed, over all devices."""
        return sum(int(row["days"]) for row in self.coverage)

    @property
    def daily_commits(self) -> float:
        """Commits of a device and day; checkpoints are none."""
        commits = sum(int(row["commits"]) for row in self.commits if row["kind"] == "commit")
        return commits / self.device_days

    @property
    def daily_write_bytes(self) -> float:
        """Bytes written of a device and day, as its disks count them."""
        return sum(int(row["write_bytes"]) for row in self.coverage) / self.device_days

    @property
    def written_shares(self) -> list[tuple[str, float]]:
        """Return the shares of written bytes by what they are of, the largest first."""
        sums: dict[str, int] = {}
        for row in self.io_mix:
            if row["operation"] == "write":
                name = _written_name(row)
                sums[name] = sums.get(name, 0) + int(row["moved_bytes"])
        whole = sum(sums.values())
        shares = ((name, value / whole) for name, value in sums.items() if value)
        return sorted(shares, key=lambda each: -each[1])

    @property
    def multi_file(self) -> int:
        """Multi-file transactions, over all devices."""
        return sum(int(row["transactions"]) for row in self.users)

    @property
    def unbilled_commits(self) -> int:
        """Commits and checkpoints of which it is not known what they made the device write."""
        return sum(int(row["commits"]) - int(row["billed"]) for row in self.commits)

    @property
    def unseen_bytes(self) -> int:
        """Bytes that the disks count as written, and of which the requests were lost."""
        rows = sum(int(r["moved_bytes"]) for r in self.io_mix if r["operation"] == "write")
        return max(sum(int(row["write_bytes"]) for row in self.coverage) - rows, 0)


def _written_name(row: Row) -> str:
    """Return what a row of write requests is of, in words."""
    match row["block_type"]:
        case "fs-journal":
            return "the filesystem's journal"
        case "fs-metadata":
            return "its metadata"
        case "data":
            return "SQLite's files" if row["file_kind"] in _SQLITE else "other files"
        case _:
            return "of an unknown owner"


def fleet_study(engine: FleetEngine, amplification: float = 1.0) -> FleetStudy:
    """Ask everything; `amplification` is that of the devices' flash."""
    coverage = fleet_ask(engine, "coverage")
    io_mix = fleet_ask(engine, "io_mix")
    return FleetStudy(
        coverage=coverage,
        losses=losses(coverage),
        reasons=fleet_ask(engine, "reasons"),
        users=fleet_ask(engine, "multi_file_days"),
        multi_file_apps=fleet_ask(engine, "multi_file_apps"),
        io_mix=io_mix,
        shares=write_shares(io_mix),
        hours=fleet_ask(engine, "hours"),
        apps=wear(coverage, fleet_ask(engine, "app_writes"), amplification),
        files=fleet_ask(engine, "file_writes"),
        ages=file_ages(fleet_ask(engine, "lives")),
        commits=fleet_ask(engine, "commits"),
        databases=fleet_ask(engine, "databases"),
        amplification=amplification,
    )


def fleet_json(study: FleetStudy) -> dict[str, Any]:
    """Return all answers as a script reads them."""
    names = {"amplification": "write_amplification", "silent": "silent_devices"}
    return public_fields(study, **names, ahead="clocks_ahead") | {
        "devices": len(study.coverage),
        "device_days": study.device_days,
        "daily_commits": study.daily_commits,
        "daily_write_bytes": study.daily_write_bytes,
        "written_shares": dict(study.written_shares),
        "multi_file_transactions": study.multi_file,
        "unbilled_commits": study.unbilled_commits,
        "unseen_write_bytes": study.unseen_bytes,
        "losses": losses_json(study.losses),
        "ages": [public_fields(each, aged="of_known_age") for each in study.ages],
    }
