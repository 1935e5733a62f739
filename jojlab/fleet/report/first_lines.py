"""The first lines of a fleet's report, and of a day of a device: what they are of, what is missing,
and what must be known to read the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from jojlab.fleet.report.rows import size_of
from jojlab.fleet.study.dataset import LeftOut
from jojlab.fleet.study.device_day import DeviceDay
from jojlab.fleet.study.losses import Losses
from jojlab.fleet.study.study import FleetStudy
from jojlab.report.shared.text import count, digits

_MOST_NAMES = 10


def headline(study: FleetStudy) -> str:
    """Say in one line what the answers are of."""
    days = [row["first_day"] for row in study.coverage], [row["last_day"] for row in study.coverage]
    return (
        f"{count(len(study.coverage), 'device')}, {count(study.device_days, 'device-day')} "
        f"from {min(days[0])} to {max(days[1])}; "
        f"{digits(sum(row['segments'] for row in study.coverage))} segments"
    )


def loss_lines(found: Losses) -> list[str]:
    """Say what is missing, a line for each sort; no line where nothing is."""
    counts = (
        (found.missing_segments, "segment was lost", "segments were lost",
         "begun, and not there: the collector was killed, its spool was full, or the server "
         "refused them (joj fleet devices counts what is in quarantine)"),
        (found.dropped_segments, "segment was dropped", "segments were dropped",
         "the spool of the device, or its disk, was full; most are among those lost"),
        (found.dropped_rows, "row was left out", "rows were left out", "its segment was full"),
        (found.lost_events, "event was lost", "events were lost",
         "the kernel had it, and could not deliver it"),
        (found.unattributed_bytes, "byte has no owner", "bytes have no owner", ""),
        (found.incomplete_segments, "segment is incomplete", "segments are incomplete", ""),
        (found.twice, "segment has another's number", "segments have another's number",
         "their rows may count twice"),
    )  # fmt: skip
    return [
        count(number, one, several) + (f": {why}" if why else "")
        for number, one, several, why in counts
        if number
    ]


def left_out_lines(left_out: Sequence[LeftOut]) -> list[str]:
    """Name the files that cannot be read; their segments are counted as lost, too."""
    lines = [f"{each.file} cannot be read: {each.why}" for each in left_out[:_MOST_NAMES]]
    if (more := len(left_out) - _MOST_NAMES) > 0:
        lines.append(f"{more:,} more files cannot be read: --json names them")
    return lines


def remarks(found: Losses) -> list[str]:
    """Say what is no loss, and must be known to read the numbers."""
    lines = []
    if found.unobserved_hours >= 1:
        lines.append(
            f"Observed: {_time_of(found.observed_hours)} of the {digits(found.device_days * 24)} "
            f"hours that {count(found.device_days, 'device-day')} "
            f"{'has' if found.device_days == 1 else 'have'}. In the rest, which may lie before "
            "the first segment or after the last, the device was off, or no collector ran. "
            "Figures a day count each of these days as a whole one."
        )
    if found.clock_steps:
        lines.append(f"The clock was set in {count(found.clock_steps, 'segment')}.")
    if found.own_write_bytes:
        lines.append(
            f"The collectors wrote {size_of(found.own_write_bytes)} to these disks themselves; "
            "that is in no other number."
        )
    return lines


def study_remarks(study: FleetStudy) -> list[str]:
    """Say the same of a fleet, and what is not known of its devices and commits."""
    lines = remarks(study.losses)
    if study.silent:
        lines.append(
            f"{count(len(study.silent), 'enrolled device')} without any segment: "
            + _some_of(study.silent)
        )
    if study.ahead:
        lines.append(
            f"{count(len(study.ahead), 'device has', 'devices have')} days that have not come yet, "
            f"as a clock was wrong: {_some_of(study.ahead)}"
        )
    every = sum(row["commits"] for row in study.commits)
    lines += _unbilled(study.unbilled, every, "commits and checkpoints")
    if study.losses.lost_events and study.unseen_bytes:
        lines.append(
            f"{size_of(study.unseen_bytes)} were written by requests that were lost: they are in "
            "no number by app, file, hour or kind."
        )
    return lines


def _some_of(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def day_remarks(found: DeviceDay) -> list[str]:
    """Say the same of a device's day."""
    lines = remarks(found.losses)
    offsets = dict.fromkeys(row["utc_offset_s"] for row in found.segments)
    if len(offsets) > 1:
        lines.append(
            f"The time zone changed: {', then '.join(map(zone_of, offsets))}. All times of commits "
            f"are by {zone_of(found.utc_offset_s)}."
        )
    return lines + _unbilled(found.unbilled, found.commit_count, "commits")


def _unbilled(unbilled: int, every: int, what: str) -> list[str]:
    if not unbilled:
        return []
    return [
        f"Of {digits(unbilled)} of {digits(every)} {what} it is not known what they made the "
        "device write: sums of these bytes are without them."
    ]


def zone_of(utc_offset_s: int) -> str:
    """Return a time zone as UTC+9 h."""
    return f"UTC{utc_offset_s / 3600:+g} h"


def _time_of(hours: float) -> str:
    if hours >= 2:
        return count(round(hours, 1), "hour")
    return f"{digits(round(hours * 60))} min" if hours * 60 >= 2 else f"{hours * 3600:.0f} s"
