"""The short answer of a fleet's report: what a device commits and writes a day, what that costs,
who writes most, what the lab's settings would take, and what is missing. Computes nothing but
shares. Prints it with the tables of a study, and one day of a device.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from jojlab.fleet.report import words
from jojlab.fleet.report.words import TextTable, known_name, loss_lines, size_of
from jojlab.fleet.study.device_day import DeviceDay
from jojlab.fleet.study.study import FleetStudy
from jojlab.report.shared import text
from jojlab.report.shared.console import left, print_table, right
from jojlab.report.shared.short_answer import (
    count,
    duration,
    fit_lines,
    incomplete_line,
    number,
    percent,
    print_answer,
    sentence,
)

_DIGITS = 3


def fleet_lines(study: FleetStudy) -> tuple[str, ...]:
    """Return at most six lines of at most 100 columns, of means of a device and day."""
    lost = [line.partition(": ")[0] for line in loss_lines(study.losses)]
    if study.left_out:
        lost.append(f"{count(len(study.left_out), 'file')} cannot be read")
    return fit_lines(
        [
            (0, _day(study)),
            (0, _commits(study)),
            (1, _bytes(study)),
            (2, _writers(study)),
            (3, _multi_file(study)),
            (0, _settings(study)),
            (1, "" if lost else "Nothing that was observed is missing."),
        ],
        incomplete_line(lost),
    )


def _day(study: FleetStudy) -> str:
    return (
        f"A device commits {_mean(study.daily_commits, 'time')} a day and writes "
        f"{size_of(study.daily_write_bytes, _DIGITS)}: {count(len(study.coverage), 'device')}, "
        f"{count(study.device_days, 'device-day')}."
    )


def _commits(study: FleetStudy) -> str:
    """Say what commits of the commonest sort cost."""
    commits = [row for row in study.commits if row["kind"] == "commit"]
    if not commits:
        return "No commit was seen."
    first = max(commits, key=lambda row: int(row["commits"]))
    share = first["commits"] / sum(row["commits"] for row in commits)
    parts = [
        f"{percent(share)} of the commits are {first['journal_mode']} with {first['sync_call']}",
        f"median {duration(first['median_ns'])}" if first["median_ns"] is not None else "",
        f"95 % within {duration(first['p95_ns'])}" if first["p95_ns"] is not None else "",
    ]
    return sentence(parts, between=", ")


def _bytes(study: FleetStudy) -> str:
    parts = [
        f"{percent(share)}{' ' if place else ' of the bytes written are '}{name}"
        for place, (name, share) in enumerate(study.written_shares)
    ]
    return sentence(parts, between=", ")


def _writers(study: FleetStudy) -> str:
    whole = sum(each.daily_bytes for each in study.apps)
    if not whole:
        return ""
    first = study.apps[0]
    words = f"{first.process or 'A process without a name'} writes most, "
    words += f"{percent(first.daily_bytes / whole)} of the bytes"
    if first.life_a_year is None:
        return f"{words}."
    at_least = "at least " * (study.amplification == 1)
    life = f"{at_least}{number(first.life_a_year * 100)} % of 3,000 erases"
    return f"{words}: a year takes {life}."


def _multi_file(study: FleetStudy) -> str:
    if not study.multi_file:
        return "No transaction was over several databases."
    words = f"{_mean(study.multi_file / study.device_days, 'transaction')} a day "
    words += "were over several databases"
    if not study.multi_file_apps:
        return f"{words}."
    first = study.multi_file_apps[0]
    share = percent(first["transactions"] / study.multi_file)
    return f"{words}, {share} of them of {known_name(first['database_name'])}."


def _settings(study: FleetStudy) -> str:
    timed = [(each.waited_ns, each.label) for each in study.settings if each.waited_ns is not None]
    if not timed:
        return ""
    (least_ns, cheapest), (most_ns, dearest) = min(timed), max(timed)
    words = f"By the lab's bills these commits wait {duration(least_ns)} a day with {cheapest}"
    return sentence([words, f"{duration(most_ns)} with {dearest}" if len(timed) > 1 else ""])


def _mean(value: float, noun: str) -> str:
    return count(round(value, 0 if value >= 100 else 1), noun)


# Devices and apps of a table; lines, which the four published users are among.
_MOST, _MOST_LINES = 12, 16
_STEPS = " ▁▂▃▄▅▆▇█"


def print_study(console: Console, study: FleetStudy) -> None:
    """Print the answer, what is missing, then every table that has rows."""
    print_answer(console, fleet_lines(study))
    console.print(escape(words.headline(study)))
    _print_losses(console, words.lost_lines(study), words.study_remarks(study))
    for row in study.reasons:
        console.print(f"  {escape(row['reason'])}: {text.count(row['segments'], 'segment')}")
    for table in (
        words.multi_file_table(study, _MOST),
        words.multi_file_apps_table(study),
        words.commits_table(study),
        words.settings_table(study),
        words.databases_table(study),
        words.mix_table(study),
        words.shares_table(study),
        words.apps_table(study, _MOST),
        words.files_table(study),
        words.ages_table(study),
    ):
        _print(console, table, _MOST_LINES)
    written = [0] * 24
    for row in study.hours:
        written[row["hour"]] = row["write_bytes"]
    _print_line(console, "Bytes written by hour of the day", written)


def print_day(console: Console, day: DeviceDay) -> None:
    """Print one day of a device."""
    zone = words.zone_of(day.utc_offset_s)
    console.print(
        f"[bold]{escape(day.device)} on {day.day} ({zone})[/bold]: "
        f"{text.count(day.commit_count, 'commit')}, {day.multi_file} of them multi-file"
    )
    lost = words.lost_lines(day)
    _print_losses(console, lost, words.day_remarks(day))
    if not lost:
        console.print("Nothing that was observed is missing.")
    counts = [0] * 24
    for row in day.commits:
        counts[row["ten_minutes"] // 6] += row["commits"]
    _print_line(console, "Commits by hour", counts)
    for table in (
        words.dearest_table(day), words.day_databases_table(day), words.day_files_table(day)
    ):  # fmt: skip
        _print(console, table, 20)


def _print_losses(console: Console, lost: Sequence[str], remarks: Sequence[str]) -> None:
    if lost:
        console.print("[bold red]Incomplete:[/bold red]")
        # A file's name is not broken, so that it can be copied.
        for line in lost:
            console.print(f"  {escape(line)}", soft_wrap=True)
    for line in remarks:
        console.print(escape(line))


def _print(console: Console, text_table: TextTable, most: int) -> None:
    if not text_table.rows:
        return
    console.print(f"\n[bold]{escape(text_table.title)}[/bold]")
    words, numbers = text_table.columns[: text_table.words], text_table.columns[text_table.words :]
    rows = (map(escape, row) for row in text_table.rows[:most])
    print_table(console, [*left(*words), *right(*numbers)], rows)
    if (more := len(text_table.rows) - most) > 0:
        console.print(f"[dim]{more} further rows are in --json and on the page[/dim]")
    if text_table.note:
        console.print(f"[dim]{escape(text_table.note)}[/dim]")


def _print_line(console: Console, title: str, values: Sequence[int]) -> None:
    most = max(values) or 1
    line = "".join(_STEPS[-(-value * (len(_STEPS) - 1) // most)] for value in values)
    console.print(f"\n[bold]{title}[/bold]\n  {line}\n  0     6     12    18    24")
