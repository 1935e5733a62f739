"""joj fleet enrol: gives a device the token with which it may send."""

from __future__ import annotations

import os
import time
from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, fleet_option
from jojlab.fleet.store.devices import enrol as enrol_device
from jojlab.fleet.store.objects import open_store
from jojlab.foundation.errors import UseError


@command()
@argument("name", help="Name of the device: a to z, 0 to 9 and -.")
@fleet_option
@option(
    "--out", metavar="FILE", type=PATH, help="Write the token to this new file, for its owner only."
)
def enrol(name: str, data: str, out: Path | None) -> None:
    """Enrol a device, and print the token that lets it send.

    The token is shown once: only its hash is stored.

    \b
    Examples:
      joj fleet enrol phone-1 --data /srv/fleet --out phone-1.token
      joj fleet enrol phone-2 --data s3://bucket/fleet
    """

    if out is None:
        print(enrol_device(open_store(data, create=True), name, int(time.time())))
        return
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UseError(f"--out {out}: {error.strerror}", "name a file that is new") from error
    with open(descriptor, "w", encoding="ascii") as stream:
        try:
            stream.write(enrol_device(open_store(data, create=True), name, int(time.time())) + "\n")
        except BaseException:
            out.unlink()
            raise
    print(f"{name} is enrolled; its token is in {out}")
