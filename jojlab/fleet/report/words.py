"""The tables and sentences of a fleet's report, as text: the same in the terminal and on the page.

Gets a FleetStudy or a DeviceDay; computes nothing but units.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jojlab.fleet.simulation.phones import USERS
from jojlab.fleet.study.dataset import Losses
from jojlab.fleet.study.device_day import Dear, DeviceDay
from jojlab.fleet.study.study import FleetStudy
from jojlab.report.shared.text import count, digits, duration, percent

# What AndroTrace found behind the names of super-journals.
_KNOWN = {
    "contact2.db": "phone book", "contacts2.db": "phone book", "EmailProvider.db": "mail",
    "History.db": "web browser", "History": "web browser", "KakaoTalk.db": "messages",
}  # fmt: skip
PUBLISHED = "Kim and Won, table 2 (AndroTrace)"
_UNNAMED = "(no name)"


class TextTable(NamedTuple):
    """A table of texts; the first `words` columns are no numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    note: str = ""


def size_of(value: float | None, most: int = 4) -> str:
    """Return bytes as 1.5 MB, by powers of ten; a dash where they are not known."""
    if value is None:
        return "–"
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= least:
            return f"{digits(value / least, most)} {unit}"
    return f"{digits(value, most)} B"


def known_name(database: str) -> str:
    """Return a database's name, with what it is known to hold."""
    app = _KNOWN.get(database)
    return f"{database or _UNNAMED}{f' ({app})' if app else ''}"


def multi_file_table(study: FleetStudy, most: int) -> TextTable:
    """Return the table of multi-file transactions a user and day, and the published users below."""
    columns = ("user", "days", "transactions", "average", "50 %", "75 %", "max")
    shown = [
        (
            row["device"], digits(row["days"]), digits(row["transactions"]),
            digits(round(row["average"], 1)), digits(round(row["median"], 1)),
            digits(round(row["upper_quartile"], 1)), digits(row["most"]),
        )
        for row in study.users[:most]
    ]  # fmt: skip
    published = [
        (
            f"published: {user.user}", digits(user.days), "–", digits(user.average),
            digits(user.median), digits(user.upper_quartile), digits(user.most),
        )
        for user in USERS
    ]  # fmt: skip
    left = len(study.users) - len(shown)
    note = f"{left:,} further devices are in --json. " if left > 0 else ""
    note += (
        f"A user is a device; a day without any counts as 0. Published: {PUBLISHED}; its days are "
        "those from the first to the last of table 1."
    )
    title = "Multi-file transactions a user and day"
    return TextTable(title, columns, [*shown, *published], note=note)


def multi_file_apps_table(study: FleetStudy) -> TextTable:
    """Return the table of the apps behind multi-file transactions."""
    return TextTable(
        "Apps behind them, by super-journal (at most 50)",
        ("database", "process", "app", "transactions", "devices", "databases", "median", "bytes"),
        [
            (
                row["database_name"] or _UNNAMED, row["process"] or _UNNAMED,
                _KNOWN.get(row["database_name"], ""), digits(row["transactions"]),
                digits(row["devices"]), digits(row["most_databases"]),
                duration(row["median_ns"]), size_of(row["device_bytes"]),
            )
            for row in study.multi_file_apps
        ],
        words=3,
        note="Bytes are those that reached the device within the commits.",
    )  # fmt: skip


def commits_table(study: FleetStudy) -> TextTable:
    """Return the table of commits a day by journal mode and sync call."""
    return TextTable(
        f"Commits a device and day: {digits(round(study.daily_commits, 1))}",
        ("journal mode", "kind", "sync call", "a day", "median", "95 %", "syncs each",
         "written each", "to the device each"),
        [
            (
                row["journal_mode"], row["kind"], row["sync_call"],
                digits(round(row["commits"] / study.device_days, 2)),
                *("–" if row[name] is None else duration(row[name])
                  for name in ("median_ns", "p95_ns")),
                digits(round(row["sync_calls"] / row["commits"], 2)),
                size_of(row["written_bytes"] / row["commits"]),
                size_of(
                    (row["database_bytes"] + row["journal_bytes"] + row["filesystem_bytes"])
                    / row["billed"] if row["billed"] else None
                ),
            )
            for row in study.commits
        ],
        words=3,
    )  # fmt: skip


def databases_table(study: FleetStudy) -> TextTable:
    """Return the table of the databases with most commits."""
    return TextTable(
        "Databases with most commits",
        ("database", "process", "a day", "devices", "waited a day", "bytes a day"),
        [
            (
                row["database"] or _UNNAMED, row["process"] or _UNNAMED,
                digits(round(row["commits"] / study.device_days, 2)), digits(row["devices"]),
                duration(row["duration_ns"] / study.device_days),
                "–" if row["device_bytes"] is None
                else size_of(row["device_bytes"] / study.device_days),
            )
            for row in study.databases
        ],
        words=2,
    )  # fmt: skip


def settings_table(study: FleetStudy) -> TextTable:
    """Return the costs of a day's commits by the lab's bills, as a table."""
    return TextTable(
        "The same commits under other settings",
        ("setting", "waited a day", "to the device a day", "NAND a day"),
        [
            (
                each.label, "–" if each.waited_ns is None else duration(each.waited_ns),
                size_of(each.written_bytes), size_of(each.nand_bytes),
            )
            for each in study.settings
        ],
        note="Each commit is charged as one of the lab's workload, at the median of its case.",
    )  # fmt: skip


def mix_table(study: FleetStudy) -> TextTable:
    """Return the table of the sorts of requests."""
    return TextTable(
        "I/O a device and day",
        ("operation", "block type", "file kind", "requests", "bytes", "sync", "random", "≤ 4 KiB"),
        [
            (
                row["operation"], row["block_type"], row["file_kind"],
                digits(round(row["requests"] / study.device_days, 1)),
                size_of(row["moved_bytes"] / study.device_days),
                *(
                    percent(row[name] / row["requests"]) if row["requests"] else "–"
                    for name in ("sync_requests", "random_requests", "small_requests")
                ),
            )
            for row in study.io_mix
        ],
        words=3,
    )  # fmt: skip


def shares_table(study: FleetStudy) -> TextTable:
    """Return the table of shares of the writes beside those of ATC'13."""
    return TextTable(
        "Shares of the writes, by requests",
        ("share", "this fleet", "ATC'13, Fig. 2"),
        [
            (each.name, "–" if each.share is None else percent(each.share),
             percent(each.published))
            for each in study.shares
        ],
    )  # fmt: skip


def apps_table(study: FleetStudy, most: int) -> TextTable:
    """Write volume and wear by app."""
    left = len(study.apps) - most
    return TextTable(
        "Writes by app, a device and day",
        ("process", "devices", "bytes", "requests", "sync", "flash life a year"),
        [
            (
                each.process or _UNNAMED, digits(each.devices), size_of(each.daily_bytes),
                digits(round(each.daily_requests, 1)), percent(each.sync_share),
                "–" if each.life_a_year is None else f"{digits(each.life_a_year * 100)} %",
            )
            for each in study.apps[:most]
        ],
        note=(f"{left:,} further processes are in --json. " if left > 0 else "")
        + "Flash life: bytes times a write amplification of "
        f"{digits(study.amplification)}, as a share of 3,000 erases of the whole capacity.",
    )  # fmt: skip


def files_table(study: FleetStudy) -> TextTable:
    """Return the table of files by bytes written."""
    return TextTable(
        "Files written most",
        ("path", "kind", "process", "devices", "bytes a day"),
        [
            (row["path"], row["file_kind"], row["process"] or _UNNAMED, digits(row["devices"]),
             size_of(row["write_bytes"] / study.device_days))
            for row in study.files
        ],
        words=3,
        note="Of each segment the 4,096 files with most bytes have a name; with --privacy kinds "
        "none has.",
    )  # fmt: skip


def ages_table(study: FleetStudy) -> TextTable:
    """Return the table of life spans of files."""
    return TextTable(
        "Life spans of files, a device and day",
        ("kind", "created", "deleted", "lost sight of", "gone within a second",
         "middle age below"),
        [
            (
                each.file_kind, digits(round(each.created / study.device_days, 2)),
                digits(round(each.deleted / study.device_days, 2)),
                digits(round(each.forgotten / study.device_days, 2)),
                percent(each.below_a_second / each.aged) if each.aged else "–",
                "–" if each.median_below_ms is None else duration(each.median_below_ms * 1e6),
            )
            for each in study.ages
        ],
        note="Ages are of deleted files whose creation was seen. Of files that a collector lost "
        "sight of, as many others were created after them, a deletion is not counted.",
    )  # fmt: skip


def clock_of(time_ns: int) -> str:
    """Return a time of the day as 14:03:59.123."""
    seconds, rest = divmod(time_ns, 10**9)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{rest // 10**6:03}"


def dearest_table(day: DeviceDay) -> TextTable:
    """Return the table of the ten transactions that took longest, with their bills."""
    return TextTable(
        "The dearest transactions",
        ("at", "process", "databases", "journal mode", "took", "syncs", "requests", "flushes",
         "database", "journal", "filesystem"),
        [
            (
                clock_of(each.time_ns), each.process or _UNNAMED, _databases(each),
                each.journal_mode + (" checkpoint" if each.kind == "checkpoint" else ""),
                duration(each.duration_ns), f"{each.sync_calls} {each.sync_call}",
                *("–" if value is None else digits(value)
                  for value in (each.requests, each.flushes)),
                *(size_of(value) for value in
                  (each.database_bytes, each.journal_bytes, each.filesystem_bytes)),
            )
            for each in day.dearest
        ],
        words=4,
        note="Bytes and requests are those that reached the device within the commit; a dash "
        "where the collector could not tell.",
    )  # fmt: skip


def _databases(each: Dear) -> str:
    names = " + ".join(posixpath.basename(name) for name in each.databases) or _UNNAMED
    return f"{names} (one transaction)" if each.super_journal else names


def day_databases_table(day: DeviceDay) -> TextTable:
    """Return the table of the databases of the day."""
    return TextTable(
        "Databases with most commits",
        ("database", "process", "journal mode", "commits", "multi-file", "waited", "bytes"),
        [
            (
                row["database"] or _UNNAMED, row["process"] or _UNNAMED,
                _mode_words(row),
                digits(row["commits"]), digits(row["multi_file"]), duration(row["duration_ns"]),
                size_of(row["device_bytes"]),
            )
            for row in day.databases
        ],
        words=3,
    )  # fmt: skip


def _mode_words(row: Mapping[str, Any]) -> str:
    """Return the journal modes of a database: two by name, and how many others there were."""
    names = list(dict.fromkeys((row["journal_mode"], row["other_mode"])))
    if (further := row["modes"] - len(names)) > 0:
        return f"{', '.join(names)} and {further} more"
    return " and ".join(names)


def day_files_table(day: DeviceDay) -> TextTable:
    """Return the table of the files of the day."""
    return TextTable(
        "Files written most",
        ("path", "kind", "process", "bytes"),
        [
            (row["path"], row["file_kind"], row["process"] or _UNNAMED, size_of(row["write_bytes"]))
            for row in day.files
        ],
        words=3,
    )


_MOST_NAMES = 10


def headline(study: FleetStudy) -> str:
    """Say in one line what the answers are of."""
    days = [row["first_day"] for row in study.coverage], [row["last_day"] for row in study.coverage]
    return (
        f"{count(len(study.coverage), 'device')}, {count(study.device_days, 'device-day')} "
        f"from {min(days[0])} to {max(days[1])}; "
        f"{digits(sum(row['segments'] for row in study.coverage))} segments"
    )


def loss_lines(losses: Losses) -> list[str]:
    """Say what is missing, a line for each sort; no line where nothing is."""
    counts = (
        (losses.missing_segments, "segment was lost", "segments were lost",
         "begun, and not there: the collector was killed, its spool was full, or the server "
         "refused them (joj fleet devices counts what is in quarantine)"),
        (losses.dropped_segments, "segment was dropped", "segments were dropped",
         "the spool of the device, or its disk, was full; most are among those lost"),
        (losses.dropped_rows, "row was left out", "rows were left out", "its segment was full"),
        (losses.lost_events, "event was lost", "events were lost",
         "the kernel had it, and could not deliver it"),
        (losses.unattributed_bytes, "byte has no owner", "bytes have no owner", ""),
        (losses.incomplete_segments, "segment is incomplete", "segments are incomplete", ""),
        (losses.twice, "segment has another's number", "segments have another's number",
         "their rows may count twice"),
    )  # fmt: skip
    return [
        count(number, one, several) + (f": {why}" if why else "")
        for number, one, several, why in counts
        if number
    ]


def lost_lines(study: FleetStudy | DeviceDay) -> list[str]:
    """Name the files that cannot be read, whose segments are counted as lost, too; then say what
    else is missing.
    """
    lines = [f"{each.file} cannot be read: {each.why}" for each in study.left_out[:_MOST_NAMES]]
    if (more := len(study.left_out) - _MOST_NAMES) > 0:
        lines.append(f"{more:,} more files cannot be read: --json names them")
    return lines + loss_lines(study.losses)


def remarks(losses: Losses) -> list[str]:
    """Say what is no loss, and must be known to read the numbers."""
    lines = []
    if losses.unobserved_hours >= 1:
        lines.append(
            f"Observed: {_time_of(losses.observed_hours)} of the {digits(losses.device_days * 24)} "
            f"hours that {count(losses.device_days, 'device-day')} "
            f"{'has' if losses.device_days == 1 else 'have'}. In the rest, which may lie before "
            "the first segment or after the last, the device was off, or no collector ran. "
            "Figures a day count each of these days as a whole one."
        )
    if losses.clock_steps:
        lines.append(f"The clock was set in {count(losses.clock_steps, 'segment')}.")
    if losses.own_write_bytes:
        lines.append(
            f"The collectors wrote {size_of(losses.own_write_bytes)} to these disks themselves; "
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
    lines += _unbilled_words(study.unbilled_commits, every, "commits and checkpoints")
    if study.losses.lost_events and study.unseen_bytes:
        lines.append(
            f"{size_of(study.unseen_bytes)} were written by requests that were lost: they are in "
            "no number by app, file, hour or kind."
        )
    return lines


def _some_of(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def day_remarks(day: DeviceDay) -> list[str]:
    """Say the same of a device's day."""
    lines = remarks(day.losses)
    offsets = dict.fromkeys(row["utc_offset_s"] for row in day.segments)
    if len(offsets) > 1:
        lines.append(
            f"The time zone changed: {', then '.join(map(zone_of, offsets))}. All times of commits "
            f"are by {zone_of(day.utc_offset_s)}."
        )
    return lines + _unbilled_words(day.unbilled_commits, day.commit_count, "commits")


def _unbilled_words(unbilled: int, every: int, noun: str) -> list[str]:
    if not unbilled:
        return []
    return [
        f"Of {digits(unbilled)} of {digits(every)} {noun} it is not known what they made the "
        "device write: sums of these bytes are without them."
    ]


def zone_of(utc_offset_s: int) -> str:
    """Return a time zone as UTC+9 h."""
    return f"UTC{utc_offset_s / 3600:+g} h"


def _time_of(hours: float) -> str:
    if hours >= 2:
        return count(round(hours, 1), "hour")
    return f"{digits(round(hours * 60))} min" if hours * 60 >= 2 else f"{hours * 3600:.0f} s"
