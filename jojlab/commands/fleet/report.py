"""joj fleet report: what the days of a fleet have in common, in the terminal and as a page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from jojlab.command_line.group import command, option
from jojlab.command_line.options import (
    PATH,
    engine_option,
    fleet_option,
    json_option,
    spark_remote_option,
)
from jojlab.fleet.report.page import study_page
from jojlab.fleet.report.terminal import print_study
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import (
    FleetEngine,
    FleetFiles,
    answered,
    fleet_files,
    silent_devices,
)
from jojlab.fleet.study.engines import EngineName, fleet_engine
from jojlab.fleet.study.settings import setting_costs
from jojlab.fleet.study.study import FleetStudy, fleet_json, fleet_study
from jojlab.foundation.errors import FINE, INCOMPLETE
from jojlab.foundation.printable import json_text
from jojlab.report.page.file import write_page
from jojlab.report.terminal.console import terminal


@command()
@fleet_option
@option("-o", "--out", metavar="FILE", type=PATH, help="Write a page of HTML, too.")
@option(
    "--bills",
    metavar="RUN",
    type=PATH,
    help="Run folder: what the commits would cost by its cases.",
)
@option(
    "--write-amplification",
    metavar="NUMBER",
    type=click.FloatRange(min=1),
    default=1.0,
    help="Of the devices' flash, for the wear by app.",
)
@engine_option
@spark_remote_option
@json_option("Print all answers as JSON.")
def report(
    data: str,
    out: Path | None,
    bills: Path | None,
    write_amplification: float,
    engine: str,
    spark_remote: str | None,
    as_json: bool,
) -> int:
    """Report a fleet: multi-file transactions a user and day, I/O.

    Also the apps behind the transactions, and commits a day. The first lines say what is missing.
    With --out the same is a page with pictures that needs no network. --engine spark asks the
    same questions of a cluster (docs/fleet.md).

    \b
    Examples:
      joj fleet report --data /srv/fleet --out fleet.html
      joj fleet report --data made --bills runs/first-look
      joj fleet report --data s3://bucket/fleet --json | jq .users
      joj fleet report --data /shared/fleet --engine spark --spark-remote sc://spark:15002

    Exit code 4 if segments, rows or events were lost, or if a file cannot be read: its segment is
    left out, and the file is named.
    """

    def ask(of: FleetEngine, files: FleetFiles) -> FleetStudy:
        return replace(fleet_study(of, write_amplification), left_out=files.left_out)

    store = open_store(data)
    study = answered(
        fleet_files(store), lambda f: fleet_engine(EngineName(engine), f, spark_remote), ask
    )
    observed = {str(row["device"]) for row in study.coverage}
    # Nowhere on earth is it more than 14 hours later than UTC.
    latest = (datetime.now(UTC) + timedelta(hours=14)).date().isoformat()
    ahead = [str(row["device"]) for row in study.coverage if row["last_day"] > latest]
    silent, bad = silent_devices(store, observed)
    study = replace(study, silent=silent, ahead=ahead, left_out=[*study.left_out, *bad])
    if bills is not None:
        study = replace(study, settings=setting_costs(bills, study.daily_commits))
    if out is not None:
        write_page(out, study_page(study, data))
    if as_json:
        print(json_text(fleet_json(study)))
    else:
        print_study(terminal(), study)
        if out is not None:
            print(out)
    return INCOMPLETE if study.is_incomplete else FINE
