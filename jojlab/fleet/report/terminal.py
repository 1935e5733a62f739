"""Prints the answers about a fleet, and one day of a device; computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from jojlab.fleet.report import words as first_lines
from jojlab.fleet.report import words as rows
from jojlab.fleet.report.answer import fleet_lines
from jojlab.fleet.report.words import TextTable
from jojlab.fleet.study.device_day import DeviceDay
from jojlab.fleet.study.study import FleetStudy
from jojlab.report.shared.console import new_table
from jojlab.report.shared.short_answer import print_answer
from jojlab.report.shared.text import count

# Devices and apps of a table; lines, which the four published users are among.
_MOST, _MOST_LINES = 12, 16
_STEPS = " ▁▂▃▄▅▆▇█"


def print_study(console: Console, study: FleetStudy) -> None:
    """Print the answer, what is missing, then every table that has rows."""
    print_answer(console, fleet_lines(study))
    console.print(escape(first_lines.headline(study)))
    lost = first_lines.left_out_lines(study.left_out) + first_lines.loss_lines(study.losses)
    _print_losses(console, lost, first_lines.study_remarks(study))
    for row in study.reasons:
        console.print(f"  {escape(row['reason'])}: {count(row['segments'], 'segment')}")
    for table in (
        rows.multi_file_table(study, _MOST),
        rows.multi_file_apps_table(study),
        rows.commits_table(study),
        rows.settings_table(study),
        rows.databases_table(study),
        rows.mix_table(study),
        rows.shares_table(study),
        rows.apps_table(study, _MOST),
        rows.files_table(study),
        rows.ages_table(study),
    ):
        _print(console, table, _MOST_LINES)
    _print_hours(console, "Bytes written by hour of the day", study.hours)


def print_day(console: Console, day: DeviceDay) -> None:
    """Print one day of a device."""
    zone = first_lines.zone_of(day.utc_offset_s)
    console.print(
        f"[bold]{escape(day.device)} on {day.day} ({zone})[/bold]: "
        f"{count(day.commit_count, 'commit')}, {day.multi_file} of them multi-file"
    )
    lost = first_lines.left_out_lines(day.left_out) + first_lines.loss_lines(day.losses)
    _print_losses(console, lost, first_lines.day_remarks(day))
    if not lost:
        console.print("Nothing that was observed is missing.")
    counts = [0] * 24
    for row in day.commits:
        counts[row["ten_minutes"] // 6] += row["commits"]
    _print_line(console, "Commits by hour", counts)
    for table in (
        rows.dearest_table(day), rows.day_databases_table(day), rows.day_files_table(day)
    ):  # fmt: skip
        _print(console, table, 20)


def _print_losses(console: Console, lost: Sequence[str], remarks: Sequence[str]) -> None:
    if lost:
        console.print("[bold red]Incomplete:[/bold red]")
        for line in lost:
            console.print(f"  {escape(line)}")
    for line in remarks:
        console.print(escape(line))


def _print(console: Console, text_table: TextTable, most: int) -> None:
    if not text_table.rows:
        return
    console.print(f"\n[bold]{escape(text_table.title)}[/bold]")
    sides = [
        "left" if place < text_table.words else "right" for place in range(len(text_table.columns))
    ]
    table = new_table(*zip(text_table.columns, sides, strict=True))
    for row in text_table.rows[:most]:
        table.add_row(*map(escape, row))
    console.print(table)
    if (more := len(text_table.rows) - most) > 0:
        console.print(f"[dim]{more} further rows are in --json and on the page[/dim]")
    if text_table.note:
        console.print(f"[dim]{escape(text_table.note)}[/dim]")


def _print_hours(console: Console, title: str, hours: Sequence[dict[str, int]]) -> None:
    values = [0] * 24
    for row in hours:
        values[row["hour"]] = row["write_bytes"]
    _print_line(console, title, values)


def _print_line(console: Console, title: str, values: Sequence[int]) -> None:
    most = max(values) or 1
    line = "".join(_STEPS[-(-value * (len(_STEPS) - 1) // most)] for value in values)
    console.print(f"\n[bold]{title}[/bold]\n  {line}\n  0     6     12    18    24")
