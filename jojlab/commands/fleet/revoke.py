"""joj fleet revoke: takes back a device's token."""

from __future__ import annotations

import time

from jojlab.command_line.group import argument, command
from jojlab.command_line.options import fleet_option
from jojlab.fleet.store.devices import revoke as revoke_device
from jojlab.fleet.store.objects import open_store


@command()
@argument("name", help="Name of the device.")
@fleet_option
def revoke(name: str, data: str) -> None:
    """Revoke a device's token for good. What it sent stays.

    A server that runs refuses the token within five seconds.

    \b
    Example:
      joj fleet revoke phone-1 --data /srv/fleet
    """

    revoke_device(open_store(data), name, int(time.time()))
    print(f"{name} is revoked")
