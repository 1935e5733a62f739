"""joj fleet serve: the server that takes the segments of a fleet's devices."""

from __future__ import annotations

from pathlib import Path

import click

from jojlab.command_line.group import command, option
from jojlab.command_line.options import PATH, fleet_option
from jojlab.fleet.store.objects import open_store
from jojlab.foundation.errors import MachineError


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
        from jojlab.fleet.server.limits import ServerLimits
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
