"""joj fleet simulate: segments of devices that do not exist."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from jojlab.foundation.errors import UseError


def simulate(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder to write into.")],
    devices: Annotated[int, typer.Option(min=1, max=9999, help="Devices.")] = 4,
    days: Annotated[int, typer.Option(min=1, max=3660, help="Days of each.")] = 97,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other days.")] = 1,
    first_day: Annotated[
        datetime, typer.Option(formats=["%Y-%m-%d"], help="Day on which all begin.")
    ] = datetime(2026, 1, 1),
    segments_a_day: Annotated[
        int, typer.Option(min=1, max=144, help="Segments of a day: 1 as compaction leaves them.")
    ] = 1,
    as_sent: Annotated[
        bool, typer.Option("--as-sent", help="Write DEVICE/HASH.tar, as a collector sends them.")
    ] = False,
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
    from rich.progress import Progress

    from jojlab.fleet.simulation.write import MadeFleet, write_fleet
    from jojlab.report.terminal.console import terminal

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
