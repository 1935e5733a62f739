"""joj fleet serve, enrol, devices, revoke and compact: the server of a fleet, and its store."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, fleet_option, json_option
from jojlab.fleet.store import compaction
from jojlab.fleet.store.devices import enrol as enrol_device
from jojlab.fleet.store.devices import listed
from jojlab.fleet.store.devices import revoke as revoke_device
from jojlab.fleet.store.objects import open_store
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.printable import json_text


@command()
@fleet_option
@option("--host", default="127.0.0.1", help="Address to listen on.")
@option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=8443, help="Port; 0 for any free."
)
@option("--certificate", metavar="FILE.pem", type=PATH, help="Certificate, with those above it.")
@option("--key", metavar="FILE.pem", type=PATH, help="Its key.")
@option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 256),
    default=1,
    help="Processes that check segments.",
)
@option(
    "--device-mib-per-s",
    metavar="NUMBER",
    type=click.FloatRange(0.001, 10000),
    default=8.0,
    help="What a device may send on average.",
)
@option(
    "--upload-seconds",
    metavar="NUMBER",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    help="Time for an upload, and 1 s more for each 16 KiB of it.",
)
@option(
    "--quarantine-mib",
    metavar="N",
    type=click.IntRange(min=0),
    default=1024,
    help="Room for what is no segment; one device: an eighth.",
)
@option(
    "--compact-every",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=300.0,
    help="Time between compactions; 0: none.",
)
def serve(
    data: str,
    host: str,
    port: int,
    certificate: Path | None,
    key: Path | None,
    workers: int,
    device_mib_per_s: float,
    upload_seconds: float,
    quarantine_mib: int,
    compact_every: float,
) -> None:
    """Serve a fleet: take segments, check them and store them.

    An upload is answered when it is durable. Devices that send are those of `joj fleet enrol`.
    /healthz says whether the store answers; /metrics has counters in the text format of Prometheus,
    and asks for no token. Without a certificate only this machine can be served.

    \b
    Examples:
      joj fleet serve --data /srv/fleet
      joj fleet serve --data /srv/fleet --host :: --certificate cert.pem --key key.pem
      joj fleet serve --data s3://bucket/fleet --host 0.0.0.0 --certificate c.pem --key k.pem

    SIGTERM and Ctrl-C end it; a kill loses nothing that was acknowledged.
    """
    try:
        from jojlab.fleet.server.access import ServerLimits
        from jojlab.fleet.server.run import Listening, serve
    except ModuleNotFoundError as error:
        raise MachineError(
            f"joj fleet serve needs {error.name}", "pip install 'jojlab[fleet]'"
        ) from error

    limits = ServerLimits(
        device_bytes_per_s=device_mib_per_s * (1 << 20),
        upload_seconds=upload_seconds,
        quarantine_bytes=quarantine_mib << 20,
    )
    listening = Listening(host, port, certificate, key)
    serve(open_store(data), listening, limits, workers, compact_every)


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
