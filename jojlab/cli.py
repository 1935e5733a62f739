"""The command `joj`: its subcommands, and how errors, signals and closed pipes end it.

A subcommand is loaded when it is asked for, so that `joj --help` answers at once. A command returns
its exit code; None is 0.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from typing import NoReturn

import click

from jojlab.command_line.group import Group, short_helps, subcommands
from jojlab.foundation.errors import FINE, MACHINE_CANNOT, JojError
from jojlab.foundation.printable import printable
from jojlab.foundation.signals import SignalReceived, raise_at_signals

BROKEN_PIPE = 141  # 128 + SIGPIPE

BENCH = Group(
    "bench",
    """Run a workload on a real disk of this machine.

\b
Examples:
  joj bench sqlite .
  joj bench sql . --scripts my-app
  joj bench file /mnt/card --sync-mode fdatasync --repeat 5
""",
    {
        "bench:sqlite": "Run SQLite transactions on this machine's disk, in real time.",
        "bench:sql": "Run SQL scripts of your own on a disk of this machine.",
        "bench:file": "Run file operations on this machine's disk, in real time.",
        "bench:mobibench": "Mobibench 1.0.9's flags and output, with its faults fixed.",
    },
)

VERIFY = Group(
    "verify",
    """Check attribution and durability against the device itself.

\b
Examples:
  joj verify attribution
  joj verify attribution --host
  joj verify durability --set filesystem=ext4
  joj verify durability --program ./engine --check ./check
""",
    {
        "verify:attribution": "Write known bytes and check how the tracer attributes them.",
        "verify:durability": "Cut the power of runs and check which commits survive.",
    },
)

IMPORT = Group(
    "import",
    """Import what other tools recorded: calls, SQL or block traces.

\b
Examples:
  joj import strace app.strace -o runs/app
  joj import mobigen mobigen.out.facebook
  joj import sql 0.sql 1.sql --setup loading.sql -o app-sql
  joj import blocks sda.txt
""",
    {
        "import_:strace": "Import a trace of strace's as a recording, for replay and export.",
        "import_:mobigen": "Import a script of MobiGen's as a recording.",
        "import_:sql": "Import scripts of SQL for the workload sql-recorded.",
        "import_:blocks": "Import a block trace as a run.",
    },
)

DEVICE = Group(
    "device",
    """Show, measure or fit device profiles (devices/NAME.toml).

\b
Examples:
  joj device show ufs-2.1
  joj device measure /dev/mmcblk0
  joj device sensitivity emmc-galaxy-s3
  joj device calibrate emmc-galaxy-s3
""",
    {
        "device:show": "Show a modelled device: parameters, bandwidth, IOPS, latencies.",
        "device:measure": "Measure a real block device and fit a profile to it.",
        "device:calibrate": "Fit a profile's one marked parameter to its one anchor.",
        "device:sensitivity": "Show how much each assumption of a device moves each figure.",
    },
)

FLEET = Group(
    "fleet",
    """Collect from many devices, and report what they have in common.

\b
Examples:
  joj fleet enrol phone-1 --data /srv/fleet --out phone-1.token
  joj fleet serve --data /srv/fleet
  joj fleet devices --data /srv/fleet
  joj fleet report --data /srv/fleet --out fleet.html
  joj fleet simulate --devices 4 --days 97 --out made
""",
    {
        "fleet:serve": "Serve a fleet: take segments, check them and store them.",
        "fleet:enrol": "Enrol a device, and print the token that lets it send.",
        "fleet:devices": "List the devices, and what each has sent.",
        "fleet:revoke": "Revoke a device's token for good. What it sent stays.",
        "fleet:report": "Report a fleet: multi-file transactions a user and day, I/O.",
        "fleet:device": "Show one day of a device, and its ten dearest transactions.",
        "fleet:simulate": "Make the segments of a fleet with published statistics.",
        "fleet:demo": "Set up a fleet on this machine, and end it when all is sent.",
        "fleet:compact": "Make one unit of the many of a day and device.",
    },
)

# Every subcommand by what a person wants, in the order of `joj --help`: its file in jojlab/commands
# and its function there, and its help; or a group by its name.
HEADINGS: dict[str, dict[str, str | Group]] = {
    "Measure in the lab": {
        "run:run": "Run an experiment in guests; show its figures, write its report.",
        "bill:bill": "Print what one commit costs, by block type, file and cause.",
        "show:show": "Show a run's answer, and one line per case.",
        "show:explain": "Describe the typical commit of a case in sentences, write by write.",
        "run:report": "Write the report of a run: one HTML file that needs no network.",
        "show:diff": "Compare two runs, figure by figure, and the parts that made them.",
        "query:query": "Query the tables of a run with SQL.",
    },
    "Watch this machine": {
        "machine:inspect": "Show what lies under a database or a folder, and what it means.",
        "trace:trace": "Trace a real disk: what a program's commits cost, and whose every byte is.",
        "recording:record": "Record every file system call of a program, or its SQL.",
        "recording:replay": "Replay the recorded calls of a program on a disk of this machine.",
        "bench": BENCH,
    },
    "Is it safe": {"verify": VERIFY},
    "Choose settings, and keep a commit cheap": {
        "advise:advise": "Find the cheapest settings that keep a guarantee.",
        "machine:cure": "Say how an app gets cheap commits: joj_wal and joj_redo for SQLite.",
        "gate:gate": "Compare a run with budgets, and list what grew.",
    },
    "Devices, one or many": {"device": DEVICE, "fleet": FLEET},
    "Files of others": {
        "import": IMPORT,
        "export:export": "Write a capture or a recording in the format of another tool.",
        "export:repro": "Write the disks of a state that a power cut left, for a bug report.",
    },
    "This installation": {
        "list_:list_": "List experiments, devices, kernels, fields or figures.",
        "machine:doctor": "Check this machine and print how to install what is missing.",
        "machine:cache": "Show the size of the cache by kind, or empty it.",
    },
}
_ALL_ROWS = {place: row for rows in HEADINGS.values() for place, row in rows.items()}
COMMANDS = subcommands(_ALL_ROWS)

HELP = """Measure what one COMMIT really costs on flash, and where it goes.

\b
Examples:
  joj run first-look
  joj bill --filesystem f2fs --journal-mode wal
  joj show runs/first-look
  joj bench sqlite /mnt/card --journal-mode wal
  joj doctor
"""


class Joj(Group):
    """The command joj: what ends a subcommand becomes a message and an exit code."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands under the headings of what a person wants."""
        for heading, rows in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(list(short_helps(subcommands(rows)).items()))

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Run the subcommand that was named, and exit with its code."""
        with exit_codes():
            code = super().invoke(ctx)
            sys.stdout.flush()
        ctx.exit(code or FINE)


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Turn what ends a command into a message and click's Exit."""
    try:
        yield
    except JojError as error:
        print(f"joj: {printable(str(error))}", file=sys.stderr)
        raise click.exceptions.Exit(error.exit_code) from None
    except KeyboardInterrupt as error:
        ended = error if isinstance(error, SignalReceived) else SignalReceived(error)
        print(f"joj: {printable(str(ended))}", file=sys.stderr)
        raise click.exceptions.Exit(ended.exit_code) from None
    except BrokenPipeError:
        _forget_output()
        raise click.exceptions.Exit(BROKEN_PIPE) from None
    except OSError as error:
        # An error without a better message; a traceback would exit with 1, "changed".
        print(f"joj: {printable(str(error))}", file=sys.stderr)
        _forget_output()
        raise click.exceptions.Exit(MACHINE_CANNOT) from None
    except (click.exceptions.Exit, click.Abort, click.ClickException):
        raise
    except Exception:
        # The traceback helps to fix the fault; Python would exit with 1, "changed".
        traceback.print_exc()
        print("joj: a fault of joj's own, which the lines above locate", file=sys.stderr)
        raise click.exceptions.Exit(MACHINE_CANNOT) from None


def _forget_output() -> None:
    """Drop buffered output that cannot be written; Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = click.version_option(
    package_name="jojlab", message="joj %(version)s", help="Print the version and exit."
)(
    Joj(
        "joj",
        HELP,
        _ALL_ROWS,
        epilog="Exit codes: 0 success; 1 an expectation did not hold; 2 usage error; "
        "3 this machine lacks something, or a case failed; 4 incomplete data.",
        context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    )
)


def main() -> NoReturn:
    """Run `joj`; SIGTERM and SIGHUP end it as Ctrl-C does."""
    raise_at_signals()
    app(prog_name="joj")  # with _JOJ_COMPLETE it completes a shell's line: docs/install.md
    sys.exit(0)
