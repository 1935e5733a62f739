"""What would the commits of a device's day cost under other settings? Reads the lab's bills.

The bills are those of the cases of one run. The workload of that run stands for the fleet's
commits: what they change, and how much, is not known of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


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
    from jojlab.analysis.run.summary import summarise
    from jojlab.foundation.cache import Cache
    from jojlab.trace.kept import Kept
    from jojlab.trace.run_folder import RunFolder

    summary = summarise(RunFolder.open(run), kept=Kept(Cache.default().analyses))
    return [
        SettingCost(
            case.label or case.case_id,
            _daily(case.figures.median, daily_commits, "commit_latency_ns_p50"),
            _daily(case.figures.median, daily_commits, "bytes_per_commit"),
            _daily(case.figures.median, daily_commits, "nand_bytes_per_commit"),
        )
        for case in summary.measured
    ]  # fmt: skip


def _daily(figures: Mapping[str, float | None], daily_commits: float, *names: str) -> float | None:
    """Return the sum of some figures of a commit, for all commits of a day."""
    values = [figures.get(name) for name in names]
    known = [value for value in values if value is not None]
    return sum(known) * daily_commits if len(known) == len(values) else None
