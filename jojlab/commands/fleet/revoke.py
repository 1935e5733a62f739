"""joj fleet revoke: takes back a device's token."""

from __future__ import annotations

from typing import Annotated

import typer

from jojlab.command_line.fleet_options import DATA


def revoke(
    name: Annotated[str, typer.Argument(help="Name of the device.")],
    data: Annotated[str, DATA] = "fleet",
) -> None:
    """Revoke a device's token for good. What it sent stays.

    A server that runs refuses the token within five seconds.

    \b
    Example:
      joj fleet revoke phone-1 --data /srv/fleet
    """
    import time

    from jojlab.fleet.store.devices import revoke
    from jojlab.fleet.store.objects import open_store

    revoke(open_store(data), name, int(time.time()))
    print(f"{name} is revoked")
