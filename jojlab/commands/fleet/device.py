"""joj fleet device: one day of one device on one page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import (
    PATH,
    engine_option,
    fleet_option,
    json_option,
    spark_remote_option,
)
from jojlab.fleet.report.page import day_page
from jojlab.fleet.report.terminal import print_day
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import FleetEngine, FleetFiles, answered, fleet_files
from jojlab.fleet.study.device_day import DeviceDay, device_day, device_day_json
from jojlab.fleet.study.engines import EngineName, fleet_engine
from jojlab.foundation.errors import FINE, INCOMPLETE
from jojlab.foundation.printable import json_text
from jojlab.report.page.file import write_page
from jojlab.report.terminal.console import terminal


@command()
@argument("name", metavar="DEVICE", help="Name of the device.")
@option(
    "--day",
    metavar="YYYY-MM-DD",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Its local day; default: the last one.",
)
@fleet_option
@option("-o", "--out", metavar="FILE", type=PATH, help="Write a page of HTML, too.")
@engine_option
@spark_remote_option
@json_option("Print the day as JSON.")
def device(
    name: str,
    day: datetime | None,
    data: str,
    out: Path | None,
    engine: str,
    spark_remote: str | None,
    as_json: bool,
) -> int:
    """Show one day of a device, and its ten dearest transactions.

    Also when it committed, and which files and apps are behind that.

    \b
    Examples:
      joj fleet device phone-1 --data /srv/fleet
      joj fleet device made-0001 --data made --day 2026-01-03 --out day.html

    Exit code 4 if segments, rows or events of the day were lost, or if a file of the device cannot
    be read: its segment is left out, and the file is named.
    """
    asked = day.date().isoformat() if day else ""

    def ask(of: FleetEngine, files: FleetFiles) -> DeviceDay:
        return device_day(of, name, asked, files.left_out)

    files = fleet_files(open_store(data))
    found = answered(files, lambda f: fleet_engine(EngineName(engine), f, spark_remote), ask)
    if out is not None:
        write_page(out, day_page(found, data))
    if as_json:
        print(json_text(device_day_json(found)))
    else:
        print_day(terminal(), found)
        if out is not None:
            print(out)
    return INCOMPLETE if found.is_incomplete else FINE
