"""joj fleet compact: makes one file of the many small ones of a day and device."""

from __future__ import annotations

from typing import Annotated

import typer

from jojlab.command_line.fleet_options import DATA


def compact(
    data: Annotated[str, DATA] = "fleet",
    all_days: Annotated[
        bool, typer.Option("--all", help="Also days that are not over, with few segments.")
    ] = False,
    grace: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long compacted segments are kept."),
    ] = 900.0,
) -> None:
    """Make one unit of the many of a day and device.

    `joj fleet serve` does so every five minutes. Readers see each segment once all the while, and
    after a kill at any moment.

    \b
    Examples:
      joj fleet compact --data /srv/fleet
      joj fleet compact --data s3://bucket/fleet --all
    """
    import time

    from rich.console import Console

    from jojlab.fleet.store.compaction import compact
    from jojlab.fleet.store.objects import open_store

    store = open_store(data)
    try:
        with Console(stderr=True).status("looking") as status:
            done = compact(store, time.time(), grace_s=grace, all_days=all_days, tell=status.update)
    finally:
        store.close()
    print(
        f"{done.segments} segments are in {done.units} new units; "
        f"{done.deleted_files} files of earlier ones are deleted"
    )
