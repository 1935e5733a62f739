"""joj fleet demo: a server, two collectors and apps that commit, on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from jojlab.command_line.group import command, option
from jojlab.command_line.options import PATH
from jojlab.fleet.demo.demo import run_demo
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import fleet_files
from jojlab.fleet.study.duckdb_engine import DuckDbEngine
from jojlab.fleet.study.study import fleet_study
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.report.terminal.console import terminal


@command()
@option(
    "-o",
    "--out",
    metavar="DIR",
    type=PATH,
    default=Path("fleet-demo"),
    help="New folder for all of it.",
)
@option(
    "--transactions",
    metavar="N",
    type=click.IntRange(1, 100000),
    default=200,
    help="Transactions of each of the apps.",
)
@option("--seed", metavar="N", type=click.IntRange(min=0), default=1, help="What the apps write.")
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
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UseError(f"{out}: is there, and is no empty folder", "name a new folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    done = run_demo(out.absolute(), transactions, seed, console.print)
    study = fleet_study(DuckDbEngine(fleet_files(open_store(str(done.data)))))
    reported = {row["device"]: row["transactions"] for row in study.users}
    for name, made in done.made.items():
        console.print(
            f"{name}: {made:,} multi-file transactions made, {reported.get(name, 0):,} reported"
        )
    if done.unsent:
        console.print(f"{done.unsent} segments were not sent")
    console.print(f"joj fleet report --data {out}/data")
    return FINE if reported == done.made else INCOMPLETE
