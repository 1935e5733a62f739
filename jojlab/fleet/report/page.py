"""The page of a fleet's report, with its charts."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from jojlab.fleet.report import words
from jojlab.fleet.report.answer import fleet_lines
from jojlab.fleet.report.words import TextTable
from jojlab.fleet.simulation.phones import USERS
from jojlab.fleet.study.device_day import DeviceDay
from jojlab.fleet.study.study import FleetStudy
from jojlab.report import page as html
from jojlab.report.shared import vega
from jojlab.report.shared.template import Specs, page_policy, render, script_json, vega_script
from jojlab.report.shared.text import count

Spec = dict[str, Any]
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_MOST_USERS, _MOST_APPS = 40, 15
_COLOURS = {**vega.KIND_COLOURS, "other data": vega.COLOURS["other data"]}


def users_chart(study: FleetStudy) -> Spec:
    """Return the chart of users: average, median, upper quartile, most; published ones beside."""
    names = {"average": "average", "median": "50 %", "upper_quartile": "75 %", "most": "max"}
    rows = [
        {"user": row["device"], "of": "this fleet", "figure": figure, "value": row[name]}
        for row in study.users[:_MOST_USERS]
        for name, figure in names.items()
    ] + [
        {"user": user.user, "of": "published", "figure": figure, "value": getattr(user, name)}
        for user in USERS
        for name, figure in names.items()
    ]
    order = list(dict.fromkeys(row["user"] for row in rows))
    return _chart(
        rows,
        {"type": "point", "filled": True, "size": 70},
        x=vega.quantity("value", "multi-file transactions a day (root)", scale={"type": "sqrt"}),
        y=vega.nominal("user", None, sort=order),
        color=_colours("figure", list(names.values()), vega.PERCENTILE_COLOURS),
        shape=vega.nominal("of", None, legend={"orient": "bottom"}),  # beside it, phones cut it off
        height={"step": 20},
    )


def hours_chart(study: FleetStudy) -> Spec:
    """Return the chart of bytes written and read by hour, a device and day."""
    rows = [
        {"hour": row["hour"], "of": of, "MB": row[name] / study.device_days / 1e6}
        for row in study.hours
        for of, name in (("written", "write_bytes"), ("read", "read_bytes"))
    ]
    return _chart(
        rows,
        {"type": "bar"},
        x=vega.nominal(
            "hour", "hour of the day, local time", axis={"labelAngle": 0}, sort=list(range(24))
        ),
        y=vega.quantity("MB", "MB a device and day"),
        color=_colours("of", ["written", "read"], (_COLOURS["db"], _COLOURS["db-journal"])),
        xOffset={"field": "of", "type": "nominal", "sort": ["written", "read"]},
        height=220,
    )


def mix_chart(study: FleetStudy) -> Spec:
    """Return the chart of bytes of each operation by what they are of."""
    rows = [
        {
            "operation": row["operation"],
            "of": _sort(row["block_type"], row["file_kind"]),
            "MB": row["moved_bytes"] / study.device_days / 1e6,
        }
        for row in study.io_mix
        if row["moved_bytes"]
    ]
    return _chart(
        rows,
        {"type": "bar"},
        x=vega.quantity("MB", "MB a device and day", aggregate="sum"),
        y=vega.nominal("operation", None),
        color=_colours("of", list(_COLOURS), tuple(_COLOURS.values())),
        height={"step": 40},
    )


def apps_chart(study: FleetStudy) -> Spec:
    """Return the chart of bytes that each app writes a day."""
    rows = [
        {"process": each.process or "(no name)", "MB": each.daily_bytes / 1e6}
        for each in study.apps[:_MOST_APPS]
    ]
    return _chart(
        rows,
        {"type": "bar", "color": _COLOURS["db"]},
        x=vega.quantity("MB", "MB written a device and day"),
        y=vega.nominal("process", None, sort=[row["process"] for row in rows]),
        height={"step": 20},
    )


def ages_chart(study: FleetStudy) -> Spec:
    """Return the chart of the share of files of each kind that were gone within a second."""
    rows = [
        {"kind": each.file_kind, "share": each.below_a_second / each.aged}
        for each in study.ages
        if each.aged
    ]
    return _chart(
        rows,
        {"type": "bar", "color": _COLOURS["fs-journal"]},
        x=vega.quantity(
            "share", "share of deleted files that lived for less than 1.024 s",
            axis={"format": "%"}, scale={"domain": [0, 1]},
        ),
        y=vega.nominal("kind", None, sort=[row["kind"] for row in rows]),
        height={"step": 20},
    )  # fmt: skip


def timeline_chart(day: DeviceDay) -> Spec:
    """Return the chart of commits of each ten minutes by app; multi-file ones are marked."""
    rows = [
        {
            "hour": row["ten_minutes"] / 6,
            "end": (row["ten_minutes"] + 1) / 6,
            "process": row["process"] or "(no name)",
            "commits": row["commits"],
            "of": "multi-file" if row["multi_file"] else "one database",
        }
        for row in day.commits
    ]
    return _chart(
        rows,
        {"type": "rect"},
        x=vega.quantity("hour", "hour of the day, local time", scale={"domain": [0, 24]}),
        x2={"field": "end"},
        y=vega.nominal("process", None),
        color=vega.quantity(
            "commits", "commits", scale={"type": "log", "scheme": "blues"}, legend={"tickCount": 3}
        ),
        row=vega.nominal("of", None, header={"labelFontSize": 12}),
        height={"step": 18},
    )


def writes_chart(day: DeviceDay) -> Spec:
    """Return the chart of bytes written in each ten minutes by what they are of."""
    rows = [
        {
            "hour": row["ten_minutes"] / 6,
            "end": (row["ten_minutes"] + 1) / 6,
            "of": _sort(row["block_type"], row["file_kind"]),
            "MB": row["moved_bytes"] / 1e6,
        }
        for row in day.io
    ]
    return _chart(
        rows,
        {"type": "bar"},
        x=vega.quantity("hour", "hour of the day, local time", scale={"domain": [0, 24]}),
        x2={"field": "end"},
        y=vega.quantity("MB", "MB written in ten minutes", aggregate="sum"),
        color=_colours("of", list(_COLOURS), tuple(_COLOURS.values())),
        height=200,
    )


def _sort(block_type: str, file_kind: str) -> str:
    """Return what a request is of, as the key of its colour."""
    if block_type != "data":
        return block_type if block_type in _COLOURS else "unknown"
    return file_kind if file_kind in _COLOURS else "other data"


def _chart(rows: list[dict[str, Any]], mark: Spec, *, height: Any, **encoding: Spec) -> Spec:
    return {
        "$schema": _SCHEMA,
        "config": vega.CONFIG,
        "data": {"values": rows},
        "mark": {**mark, "tooltip": True},
        "encoding": encoding,
        "height": height,
    }


def _colours(field: str, names: Sequence[str], colours: Sequence[str]) -> Spec:
    scale = {"domain": list(names), "range": list(colours)[: len(names)]}
    return vega.nominal(field, None, scale=scale, legend={"orient": "top"})


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
        "users": users_chart(study),
        "hours": hours_chart(study),
        "mix": mix_chart(study),
        "apps": apps_chart(study),
        "ages": ages_chart(study),
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
            [words.multi_file_table(study, _MOST_ROWS), words.multi_file_apps_table(study)],
        ),
        _PagePart(
            "commits", "Commits", (), [words.commits_table(study), words.databases_table(study)]
        ),
        _PagePart("settings", "Other settings", (), [words.settings_table(study)]),
        _PagePart(
            "kinds", "Kinds of I/O",
            [("mix", "Bytes by operation and sort")],
            [words.shares_table(study), words.mix_table(study)],
        ),
        _PagePart("day", "Hours of the day", [("hours", "Bytes by hour of the day")], ()),
        _PagePart(
            "wear", "Apps, files and wear",
            [("apps", "Bytes written by app")],
            [words.apps_table(study, _MOST_ROWS), words.files_table(study)],
        ),
        _PagePart(
            "lives", "Life spans",
            [("ages", "Share of files that lived for less than a second, by kind")],
            [words.ages_table(study)],
        ),
    ]  # fmt: skip
    command = f"joj fleet report --data {shlex.quote(data)} --json"
    remarks = words.lost_lines(study), words.study_remarks(study)
    lead = words.headline(study)
    return _page("A fleet's days", lead, remarks, parts, specs, command, fleet_lines(study))


def day_page(day: DeviceDay, data: str) -> str:
    """Return the page of one day of a device."""
    specs: Specs = {"timeline": timeline_chart(day), "writes": writes_chart(day)}
    parts = [
        _PagePart(
            "timeline-of-commits", "When it committed",
            [
                ("timeline", "Commits of each ten minutes by app"),
                ("writes", "Bytes written in each ten minutes"),
            ],
            (),
        ),
        _PagePart("dearest", "The dearest transactions", (), [words.dearest_table(day)]),
        _PagePart(
            "apps", "Files and apps", (),
            [words.day_databases_table(day), words.day_files_table(day)],
        ),
    ]  # fmt: skip
    lead = (
        f"{count(day.commit_count, 'commit')}, {day.multi_file} of them over several "
        f"databases. Times are local: {words.zone_of(day.utc_offset_s)}."
    )
    command = (
        f"joj fleet device {shlex.quote(day.device)} --data {shlex.quote(data)} "
        f"--day {day.day} --json"
    )
    remarks = words.lost_lines(day), words.day_remarks(day)
    return _page(f"{day.device}, {day.day}", lead, remarks, parts, specs, command)


def _page(
    title: str,
    lead: str,
    remarks_and_losses: tuple[Sequence[str], Sequence[str]],
    parts: Sequence[_PagePart],
    specs: Specs,
    command: str,
    answer: Sequence[str] = (),
) -> str:
    """Return the page; `remarks_and_losses` is what is missing, and what else must be known."""
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
        answer=answer,
        lead=lead,
        style=Markup(style),
        lost=remarks_and_losses[0],
        remarks=remarks_and_losses[1],
        parts=[part for part in filled if part.charts or part.tables],
        command=command,
        charts=script_json(specs),
        script=Markup(script),
    )
