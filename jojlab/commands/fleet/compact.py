"""joj fleet compact: makes one file of the many small ones of a day and device."""

from __future__ import annotations

import time

import click
from rich.console import Console

from jojlab.command_line.group import command, option
from jojlab.command_line.options import fleet_option
from jojlab.fleet.store import compaction
from jojlab.fleet.store.objects import open_store


@command()
@fleet_option
@option("--all", "all_days", is_flag=True, help="Also days that are not over, with few segments.")
@option(
    "--grace",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=900.0,
    help="How long compacted segments are kept.",
)
def compact(data: str, all_days: bool, grace: float) -> None:
    """Make one unit of the many of a day and device.

    `joj fleet serve` does so every five minutes. Readers see each segment once all the while, and
    after a kill at any moment.

    \b
    Examples:
      joj fleet compact --data /srv/fleet
      joj fleet compact --data s3://bucket/fleet --all
    """

    store = open_store(data)
    try:
        with Console(stderr=True).status("looking") as status:
            done = compaction.compact(
                store, time.time(), grace_s=grace, all_days=all_days, tell=status.update
            )
    finally:
        store.close()
    print(
        f"{done.segments} segments are in {done.units} new units; "
        f"{done.deleted_files} files of earlier ones are deleted"
    )
