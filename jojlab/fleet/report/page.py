"""The pages of a fleet and of a device's day: one HTML file each, which needs no network."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from jojlab.fleet.report import charts, first_lines, rows
from jojlab.fleet.report.rows import TextTable
from jojlab.fleet.study.device_day import DeviceDay
from jojlab.fleet.study.study import FleetStudy
from jojlab.report import page as html
from jojlab.report.shared.template import Specs, page_policy, render, script_json, vega_script
from jojlab.report.shared.text import count

_MOST_ROWS = 1000


class _PagePart(NamedTuple):
    """A section: its charts, by name and what they show to readers of the text, and tables."""

    name: str
    title: str
    charts: Sequence[tuple[str, str]]
    tables: Sequence[TextTable]


def study_page(study: FleetStudy, data: str) -> str:
    """Return the page of a whole fleet; `data` is the store as the commands name it."""
    specs: Specs = {
        "users": charts.users(study),
        "hours": charts.hours(study),
        "mix": charts.mix(study),
        "apps": charts.apps(study),
        "ages": charts.ages(study),
    }
    reasons = TextTable(
        "Why segments are incomplete",
        ("reason", "segments", "devices"),
        [(row["reason"], str(row["segments"]), str(row["devices"])) for row in study.reasons],
    )
    parts = [
        _PagePart("missing", "What is missing", (), [reasons]),
        _PagePart(
            "multi-file", "Multi-file transactions",
            [("users", "Multi-file transactions a day of each user, published ones beside")],
            [rows.multi_file_table(study, _MOST_ROWS), rows.multi_file_apps_table(study)],
        ),
        _PagePart(
            "commits", "Commits", (), [rows.commits_table(study), rows.databases_table(study)]
        ),
        _PagePart("settings", "Other settings", (), [rows.settings_table(study)]),
        _PagePart(
            "kinds", "Kinds of I/O",
            [("mix", "Bytes by operation and sort")],
            [rows.shares_table(study), rows.mix_table(study)],
        ),
        _PagePart("day", "Hours of the day", [("hours", "Bytes by hour of the day")], ()),
        _PagePart(
            "wear", "Apps, files and wear",
            [("apps", "Bytes written by app")],
            [rows.apps_table(study, _MOST_ROWS), rows.files_table(study)],
        ),
        _PagePart(
            "lives", "Life spans",
            [("ages", "Share of files that lived for less than a second, by kind")],
            [rows.ages_table(study)],
        ),
    ]  # fmt: skip
    command = f"joj fleet report --data {shlex.quote(data)} --json"
    lost = first_lines.left_out_lines(study.left_out) + first_lines.loss_lines(study.losses)
    told = lost, first_lines.study_remarks(study)
    return _page("A fleet's days", first_lines.headline(study), told, parts, specs, command)


def day_page(found: DeviceDay, data: str) -> str:
    """Return the page of one day of a device."""
    specs: Specs = {"timeline": charts.timeline(found), "writes": charts.day_writes(found)}
    parts = [
        _PagePart(
            "timeline-of-commits", "When it committed",
            [
                ("timeline", "Commits of each ten minutes by app"),
                ("writes", "Bytes written in each ten minutes"),
            ],
            (),
        ),
        _PagePart("dearest", "The dearest transactions", (), [rows.dearest_table(found)]),
        _PagePart(
            "apps", "Files and apps", (),
            [rows.day_databases_table(found), rows.day_files_table(found)],
        ),
    ]  # fmt: skip
    lead = (
        f"{count(found.commit_count, 'commit')}, {found.multi_file} of them over several "
        f"databases. Times are local: {first_lines.zone_of(found.utc_offset_s)}."
    )
    command = (
        f"joj fleet device {shlex.quote(found.device)} --data {shlex.quote(data)} "
        f"--day {found.day} --json"
    )
    lost = first_lines.left_out_lines(found.left_out) + first_lines.loss_lines(found.losses)
    told = lost, first_lines.day_remarks(found)
    return _page(f"{found.device}, {found.day}", lead, told, parts, specs, command)


def _page(
    title: str,
    lead: str,
    told: tuple[Sequence[str], Sequence[str]],
    parts: Sequence[_PagePart],
    specs: Specs,
    command: str,
) -> str:
    """Return the page; `told` is what is missing, and what else must be known."""
    filled = [
        part._replace(tables=[table for table in part.tables if table.rows]) for part in parts
    ]
    own = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
    script = "\n".join([vega_script(), own])
    style = (Path(html.__file__).parent / "page.css").read_text(encoding="utf-8")
    # Markup is what must not be escaped: files of jojlab, its policy, JSON that ends no element.
    return render(
        "fleet/report/page.html",
        policy=page_policy(script),
        title=title,
        lead=lead,
        style=Markup(style),
        lost=told[0],
        remarks=told[1],
        parts=[part for part in filled if part.charts or part.tables],
        command=command,
        charts=script_json(specs),
        script=Markup(script),
    )
