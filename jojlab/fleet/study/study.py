"""Puts the answers about a fleet together: what the terminal, the page and --json are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jojlab.fleet.study.ask import fleet_ask
from jojlab.fleet.study.dataset import FleetEngine, LeftOut, Row
from jojlab.fleet.study.file_ages import FileAges, file_ages
from jojlab.fleet.study.losses import Losses, losses, losses_json
from jojlab.fleet.study.settings import SettingCost
from jojlab.fleet.study.shares import WriteShare, write_shares
from jojlab.fleet.study.wear import AppWear, wear


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
    left_out: Sequence[LeftOut] = ()

    @property
    def is_incomplete(self) -> bool:
        """Whether something that was observed is not in the answers."""
        return self.losses.is_incomplete or bool(self.left_out)

    @property
    def device_days(self) -> int:
        """Days that were observed, over all devices."""
        return sum(int(row["days"]) for row in self.coverage)

    @property
    def daily_commits(self) -> float:
        """Commits of a device and day; checkpoints are none."""
        made = sum(int(row["commits"]) for row in self.commits if row["kind"] == "commit")
        return made / self.device_days

    @property
    def multi_file(self) -> int:
        """Multi-file transactions, over all devices."""
        return sum(int(row["transactions"]) for row in self.users)

    @property
    def unbilled(self) -> int:
        """Commits and checkpoints of which it is not known what they made the device write."""
        return sum(int(row["commits"]) - int(row["billed"]) for row in self.commits)

    @property
    def unseen_bytes(self) -> int:
        """Bytes that the disks count as written, and of which the requests were lost."""
        rows = sum(int(r["moved_bytes"]) for r in self.io_mix if r["operation"] == "write")
        return max(sum(int(row["write_bytes"]) for row in self.coverage) - rows, 0)


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
    return {
        "devices": len(study.coverage),
        "device_days": study.device_days,
        "daily_commits": study.daily_commits,
        "multi_file_transactions": study.multi_file,
        "write_amplification": study.amplification,
        "losses": losses_json(study.losses),
        "left_out": [asdict(each) for each in study.left_out],
        "reasons": list(study.reasons),
        "unbilled_commits": study.unbilled,
        "unseen_write_bytes": study.unseen_bytes,
        "silent_devices": list(study.silent),
        "clocks_ahead": list(study.ahead),
        "coverage": list(study.coverage),
        "users": list(study.users),
        "multi_file_apps": list(study.multi_file_apps),
        "io_mix": list(study.io_mix),
        "shares": [asdict(each) for each in study.shares],
        "hours": list(study.hours),
        "apps": [asdict(each) for each in study.apps],
        "files": list(study.files),
        "ages": [asdict(each) for each in study.ages],
        "commits": list(study.commits),
        "databases": list(study.databases),
        "settings": [asdict(each) for each in study.settings],
    }
