"""The losses in what was observed of a fleet, added up over its devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.fleet.study.dataset import Row

HOUR_NS = 3_600_000_000_000
# What is added up as the collectors counted it.
_COUNTED = ("dropped_segments", "dropped_rows", "lost_events", "unattributed_bytes",
            "own_write_bytes")  # fmt: skip


@dataclass(frozen=True)
class Losses:
    """Counts over all segments. Each makes the answers incomplete but those from `clock_steps` on.

    `missing_segments` were begun and never came, those too that the device dropped; `twice` are
    segments with a number that another has too; `device_days` are days of which something was
    observed, and `unobserved_hours` those of their hours of which nothing was.
    """

    missing_segments: int
    dropped_segments: int
    dropped_rows: int
    lost_events: int
    unattributed_bytes: int
    incomplete_segments: int
    twice: int
    clock_steps: int
    device_days: int
    observed_hours: float
    unobserved_hours: float
    own_write_bytes: int

    @property
    def is_incomplete(self) -> bool:
        """Return whether anything that was seen to happen is not in the answers."""
        return any(
            (self.missing_segments, self.dropped_segments, self.dropped_rows, self.lost_events,
             self.unattributed_bytes, self.incomplete_segments, self.twice)
        )  # fmt: skip


def losses(coverage: Sequence[Row]) -> Losses:
    """Add up the rows of the question `coverage`."""

    def total(name: str) -> int:
        return sum(int(row[name]) for row in coverage)

    days, hours = total("days"), total("observed_ns") / HOUR_NS
    return Losses(
        missing_segments=total("expected_segments") - total("different_segments"),
        incomplete_segments=total("incomplete_segments"),
        twice=total("segments") - total("different_segments"),
        clock_steps=total("clock_steps"),
        device_days=days,
        observed_hours=hours,
        unobserved_hours=max(days * 24 - hours, 0.0),
        **{name: total(name) for name in _COUNTED},
    )


def day_coverage(segments: Sequence[Row]) -> Row:
    """Return the row that `coverage` has, of the segments of one day and device.

    A day begins anywhere in a spool: what is missing is between the first number and the last.
    """
    numbers: dict[str, set[int]] = {}
    for row in segments:
        numbers.setdefault(row["spool_id"], set()).add(row["sequence"])
    return {name: sum(row[name] for row in segments) for name in _COUNTED} | {
        "days": 1,
        "segments": len(segments),
        "different_segments": sum(len(own) for own in numbers.values()),
        "expected_segments": sum(max(own) - min(own) + 1 for own in numbers.values()),
        "observed_ns": sum(row["end_boot_ns"] - row["begin_boot_ns"] for row in segments),
        "incomplete_segments": sum(row["incomplete"] != "" for row in segments),
        "clock_steps": sum(_was_set(row) for row in segments),
    }


def _was_set(row: Row) -> bool:
    wall_ns = row["end_unix_ns"] - row["begin_unix_ns"]
    return bool(abs(wall_ns - row["end_boot_ns"] + row["begin_boot_ns"]) > 10**9)


def losses_json(losses: Losses) -> dict[str, Any]:
    """Return the counts by name."""
    return {**vars(losses), "is_incomplete": losses.is_incomplete}
