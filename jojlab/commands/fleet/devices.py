"""joj fleet devices: lists the devices of a fleet, and what each has sent."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from jojlab.command_line.group import command
from jojlab.command_line.options import fleet_option, json_option
from jojlab.fleet.store.listing import listed
from jojlab.fleet.store.objects import open_store
from jojlab.foundation.printable import json_text


@command()
@fleet_option
@json_option()
def devices(data: str, as_json: bool) -> None:
    """List the devices, and what each has sent.

    Since when, revoked or not, segments, days, and how many files are in quarantine.

    \b
    Examples:
      joj fleet devices --data /srv/fleet
      joj fleet devices --data s3://bucket/fleet --json
    """

    rows = listed(open_store(data))
    if as_json:
        print(json_text([row.record() for row in rows]))
        return
    if not rows:
        print(f"{data}: no devices; joj fleet enrol NAME --data {data}")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("device", "enrolled", "revoked", "segments", "first day", "last day",
                 "quarantined"):  # fmt: skip
        right = name in ("segments", "quarantined")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        cells = row.record()
        table.add_row(*("" if value is None else str(value) for value in cells.values()))
    Console().print(table)
