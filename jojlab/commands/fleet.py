"""joj fleet: its server and store, its reports, and fleets that are simulated."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from click import DateTime, FloatRange, IntRange
from rich.console import Console
from rich.progress import Progress

from jojlab.command_line import options as common
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.fleet.demo import run_demo
from jojlab.fleet.report.answer import fleet_lines, print_day, print_study
from jojlab.fleet.report.page import day_page, study_page
from jojlab.fleet.simulation.segments import SimulatedFleet, write_fleet
from jojlab.fleet.store import compaction
from jojlab.fleet.store.devices import device_listings
from jojlab.fleet.store.devices import enrol as enrol_device
from jojlab.fleet.store.devices import revoke as revoke_device
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import (
    EngineName,
    FleetEngine,
    FleetFiles,
    answer_readable,
    fleet_files,
    silent_devices,
)
from jojlab.fleet.study.device_day import DeviceDay, device_day, device_day_json
from jojlab.fleet.study.engines import DuckDbEngine, fleet_engine
from jojlab.fleet.study.study import FleetStudy, fleet_json, fleet_study, setting_costs
from jojlab.foundation.errors import FINE, INCOMPLETE, MachineError, UseError
from jojlab.foundation.printable import json_text
from jojlab.report.shared.console import READABLE, left, print_table, right, terminal
from jojlab.report.shared.template import write_page


@command()
@common.fleet_data
@option("--host", "TEXT", "Address to listen on.", default="127.0.0.1")
@option("--port", "N", "Port; 0 for any free.", IntRange(0, 65535), 8443)
@option("--certificate", "FILE.pem", "Certificate, with those above it.", PATH)
@option("--key", "FILE.pem", "Its key.", PATH)
@option("--workers", "N", "Processes that check segments.", IntRange(1, 256), 1)
@option(
    "--device-mib-per-s",
    "NUMBER",
    "What a device may send on average.",
    FloatRange(0.001, 10000),
    8.0,
)
@option(
    "--upload-seconds",
    "NUMBER",
    "Time for an upload, and 1 s more for each 16 KiB of it.",
    FloatRange(0.1, 3600),
    30.0,
)
@option(
    "--quarantine-mib",
    "N",
    "Room for what is no segment; one device: an eighth.",
    IntRange(0),
    1024,
)
@option("--compact-every", "SECONDS", "Time between compactions; 0: none.", FloatRange(0), 300.0)
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
@common.fleet_data
@option("--out", "FILE", "Write the token to this new file, for its owner only.", PATH)
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
@common.fleet_data
@common.json()
def devices(data: str, as_json: bool) -> None:
    """List the devices, and what each has sent.

    Since when, revoked or not, segments, days, and how many files are in quarantine.

    \b
    Examples:
      joj fleet devices --data /srv/fleet
      joj fleet devices --data s3://bucket/fleet --json
    """
    rows = device_listings(open_store(data))
    if as_json:
        print(json_text([row.record() for row in rows]))
        return
    if not rows:
        print(f"{data}: no devices; joj fleet enrol NAME --data {data}")
        return
    begin, end = left("device", "enrolled", "revoked"), left("first day", "last day")
    columns = (*begin, *right("segments"), *end, *right("quarantined"))
    cells = (["" if it is None else str(it) for it in row.record().values()] for row in rows)
    print_table(terminal(), columns, cells)


@command()
@argument("name", help="Name of the device.")
@common.fleet_data
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
@common.fleet_data
@flag("--all", "Also days that are not over, with few segments.", name="all_days")
@option("--grace", "SECONDS", "How long compacted segments are kept.", FloatRange(0), 900.0)
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


@command()
@common.fleet_data
@option("-o, --out", "FILE", "Write a page of HTML, too.", PATH)
@option("--bills", "RUN", "Run folder: what the commits would cost by its cases.", PATH)
@option(
    "--write-amplification",
    "NUMBER",
    "Of the devices' flash, for the wear by app.",
    FloatRange(1),
    1.0,
)
@common.engine
@common.spark_remote
@common.json("Print all answers as JSON.")
def report(
    data: str,
    out: Path | None,
    bills: Path | None,
    write_amplification: float,
    engine: str,
    spark_remote: str | None,
    as_json: bool,
) -> int:
    """Report a fleet: multi-file transactions a user and day, I/O.

    Also the apps behind the transactions, and commits a day. It begins with the answer in at most
    six lines, which say what is missing. With --out the same is a page with pictures that needs no
    network. --engine spark asks the same questions of a cluster (docs/fleet.md).

    \b
    Examples:
      joj fleet report --data /srv/fleet --out fleet.html
      joj fleet report --data made --bills runs/first-look
      joj fleet report --data s3://bucket/fleet --json | jq .users
      joj fleet report --data /shared/fleet --engine spark --spark-remote sc://spark:15002

    Exit code 4 if segments, rows or events were lost, or if a file cannot be read: its segment is
    left out, and the file is named.
    """

    def ask(engine: FleetEngine, files: FleetFiles) -> FleetStudy:
        return replace(fleet_study(engine, write_amplification), left_out=files.left_out)

    store = open_store(data)
    study = answer_readable(
        fleet_files(store), lambda f: fleet_engine(EngineName(engine), f, spark_remote), ask
    )
    observed = {str(row["device"]) for row in study.coverage}
    # Nowhere on earth is it more than 14 hours later than UTC.
    latest = (datetime.now(UTC) + timedelta(hours=14)).date().isoformat()
    ahead = [str(row["device"]) for row in study.coverage if row["last_day"] > latest]
    silent, bad = silent_devices(store, observed)
    study = replace(study, silent=silent, ahead=ahead, left_out=[*study.left_out, *bad])
    if bills is not None:
        study = replace(study, settings=setting_costs(bills, study.daily_commits))
    if out is not None:
        write_page(out, study_page(study, data))
    if as_json:
        print(json_text({"in_short": list(fleet_lines(study)), **fleet_json(study)}))
    else:
        print_study(terminal(READABLE), study)
        if out is not None:
            print(out)
    return INCOMPLETE if study.is_incomplete else FINE


@command()
@argument("name", metavar="DEVICE", help="Name of the device.")
@option("--day", "YYYY-MM-DD", "Its local day; default: the last one.", DateTime(["%Y-%m-%d"]))
@common.fleet_data
@option("-o, --out", "FILE", "Write a page of HTML, too.", PATH)
@common.engine
@common.spark_remote
@common.json("Print the day as JSON.")
def device(
    name: str,
    day: datetime | None,
    data: str,
    out: Path | None,
    engine: str,
    spark_remote: str | None,
    as_json: bool,
) -> int:
    """Show one day of a device, and its ten dearest transactions.

    Also when it committed, and which files and apps are behind that.

    \b
    Examples:
      joj fleet device phone-1 --data /srv/fleet
      joj fleet device made-0001 --data made --day 2026-01-03 --out day.html

    Exit code 4 if segments, rows or events of the day were lost, or if a file of the device cannot
    be read: its segment is left out, and the file is named.
    """
    date = day.date().isoformat() if day else ""

    def ask(engine: FleetEngine, files: FleetFiles) -> DeviceDay:
        return device_day(engine, name, date, files.left_out)

    files = fleet_files(open_store(data))
    found = answer_readable(files, lambda f: fleet_engine(EngineName(engine), f, spark_remote), ask)
    if out is not None:
        write_page(out, day_page(found, data))
    if as_json:
        print(json_text(device_day_json(found)))
    else:
        print_day(terminal(READABLE), found)
        if out is not None:
            print(out)
    return INCOMPLETE if found.is_incomplete else FINE


def _refuse_full(out: Path) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UseError(f"{out}: is there, and is no empty folder", "name a new folder with --out")


@command()
@option("-o, --out", "DIR", "Folder to write into.", PATH, required=True)
@option("--devices", "N", "Devices.", IntRange(1, 9999), 4)
@option("--days", "N", "Days of each.", IntRange(1, 3660), 97)
@option("--seed", "N", "Another seed draws other days.", IntRange(0), 1)
@option(
    "--first-day",
    "YYYY-MM-DD",
    "Day on which all begin.",
    DateTime(["%Y-%m-%d"]),
    datetime(2026, 1, 1),
)
@option(
    "--segments-a-day", "N", "Segments of a day: 1 as compaction leaves them.", IntRange(1, 144), 1
)
@flag("--as-sent", "Write DEVICE/HASH.tar, as a collector sends them.")
def simulate(
    out: Path,
    devices: int,
    days: int,
    seed: int,
    first_day: datetime,
    segments_a_day: int,
    as_sent: bool,
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
    _refuse_full(out)
    fleet = SimulatedFleet(devices, days, seed, first_day.date(), segments_a_day)
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


@command()
@option("-o, --out", "DIR", "New folder for all of it.", PATH, Path("fleet-demo"))
@option("--transactions", "N", "Transactions of each of the apps.", IntRange(1, 100000), 200)
@option("--seed", "N", "What the apps write.", IntRange(0), 1)
def demo(out: Path, transactions: int, seed: int) -> int:
    """Set up a fleet on this machine, and end it when all is sent.

    It is a server with TLS, two collectors, and apps that commit.
    Each device is a disk of its own (ext4 on a loop device), on which four apps commit to SQLite, a
    third of their transactions to several databases. At the end all programs are ended and the
    disks removed; OUT/data has what the server took. Needs root.

    \b
    Examples:
      sudo .venv/bin/joj fleet demo
      joj fleet report --data fleet-demo/data --out fleet.html

    Exit code 4 where not every multi-file transaction that was made is reported, once.
    """
    console = terminal()
    _refuse_full(out)
    out.mkdir(parents=True, exist_ok=True)
    done = run_demo(out.absolute(), transactions, seed, console.print)
    study = fleet_study(DuckDbEngine(fleet_files(open_store(str(done.data)))))
    reported = {row["device"]: row["transactions"] for row in study.users}
    for name, made in done.simulated.items():
        console.print(
            f"{name}: {made:,} multi-file transactions made, {reported.get(name, 0):,} reported"
        )
    if done.unsent:
        console.print(f"{done.unsent} segments were not sent")
    console.print(f"joj fleet report --data {out}/data")
    return FINE if reported == done.simulated else INCOMPLETE
