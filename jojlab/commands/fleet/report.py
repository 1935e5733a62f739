"""joj fleet report: what the days of a fleet have in common, in the terminal and as a page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from jojlab.command_line.fleet_options import DATA, ENGINE, SPARK_REMOTE
from jojlab.fleet.study.engines import EngineName
from jojlab.foundation.errors import FINE, INCOMPLETE


def report(
    data: Annotated[str, DATA] = "fleet",
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write a page of HTML, too."),
    ] = None,
    bills: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run folder: what the commits would cost by its cases."),
    ] = None,
    write_amplification: Annotated[
        float, typer.Option(min=1, help="Of the devices' flash, for the wear by app.")
    ] = 1.0,
    engine: Annotated[EngineName, ENGINE] = EngineName.duckdb,
    spark_remote: Annotated[str | None, SPARK_REMOTE] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all answers as JSON.")] = False,
) -> None:
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
    from jojlab.fleet.study.engines import fleet_engine
    from jojlab.fleet.study.settings import setting_costs
    from jojlab.fleet.study.study import FleetStudy, fleet_json, fleet_study
    from jojlab.foundation.printable import json_text
    from jojlab.report.page.file import write_page
    from jojlab.report.terminal.console import terminal

    def ask(of: FleetEngine, files: FleetFiles) -> FleetStudy:
        return replace(fleet_study(of, write_amplification), left_out=files.left_out)

    store = open_store(data)
    study = answered(fleet_files(store), lambda f: fleet_engine(engine, f, spark_remote), ask)
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
    raise typer.Exit(INCOMPLETE if study.is_incomplete else FINE)
