"""joj fleet serve: the server that takes the segments of a fleet's devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jojlab.command_line.fleet_options import DATA


def serve(
    data: Annotated[str, DATA] = "fleet",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free.")] = 8443,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE.pem", help="Certificate, with those above it.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE.pem", help="Its key.")] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that check segments.")
    ] = 1,
    device_mib_per_s: Annotated[
        float, typer.Option(min=0.001, max=10_000, help="What a device may send on average.")
    ] = 8.0,
    upload_seconds: Annotated[
        float,
        typer.Option(
            min=0.1, max=3600, help="Time for an upload, and 1 s more for each 16 KiB of it."
        ),
    ] = 30.0,
    quarantine_mib: Annotated[
        int, typer.Option(min=0, help="Room for what is no segment; one device: an eighth.")
    ] = 1024,
    compact_every: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time between compactions; 0: none.")
    ] = 300.0,
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
    from jojlab.fleet.store.objects import open_store
    from jojlab.foundation.errors import MachineError

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
