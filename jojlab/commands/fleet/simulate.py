"""joj fleet simulate: segments of devices that do not exist."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click
from rich.progress import Progress

from jojlab.command_line.group import command, option
from jojlab.command_line.options import PATH
from jojlab.fleet.simulation.write import MadeFleet, write_fleet
from jojlab.foundation.errors import UseError
from jojlab.report.terminal.console import terminal


@command()
@option("-o", "--out", metavar="DIR", type=PATH, required=True, help="Folder to write into.")
@option("--devices", metavar="N", type=click.IntRange(1, 9999), default=4, help="Devices.")
@option("--days", metavar="N", type=click.IntRange(1, 3660), default=97, help="Days of each.")
@option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    help="Another seed draws other days.",
)
@option(
    "--first-day",
    metavar="YYYY-MM-DD",
    type=click.DateTime(["%Y-%m-%d"]),
    default=datetime(2026, 1, 1),
    help="Day on which all begin.",
)
@option(
    "--segments-a-day",
    metavar="N",
    type=click.IntRange(1, 144),
    default=1,
    help="Segments of a day: 1 as compaction leaves them.",
)
@option("--as-sent", is_flag=True, help="Write DEVICE/HASH.tar, as a collector sends them.")
def simulate(
    out: Path,
    devices: int,
    days: int,
    seed: int,
    first_day: datetime,
    segments_a_day: int,
    as_sent: bool,
) -> None:
    """Make the segments of a fleet with published statistics.

    The devices are, in turn, like users 1 to 4 of the AndroTrace study (multi-file transactions a
    day: docs/fleet.md names this and all other figures, and what is assumed). The same options give
    the same bytes. It is written as the dataset that joj fleet serve keeps.

    \b
    Examples:
      joj fleet simulate --devices 4 --days 97 --out made
      joj fleet report --data made
      joj fleet simulate --devices 2 --days 1 --segments-a-day 96 --as-sent --out spool
    """

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UseError(f"{out}: is there, and is no empty folder", "name a new folder with --out")
    fleet = MadeFleet(devices, days, seed, first_day.date(), segments_a_day)
    rows = written = 0
    console = terminal()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("making days", total=devices * days)
        for made in write_fleet(fleet, out, as_sent=as_sent):
            rows += made.rows
            written += made.written_bytes
            progress.advance(task)
    each = written / (devices * days)
    console.print(
        f"{out}: {devices * days:,} device-days, {rows:,} rows, {written / 1e6:,.1f} MB "
        f"({each / 1e3:,.1f} kB a device-day)"
    )
