"""The command `joj`: its subcommands, and how errors, signals and closed pipes end it.

A subcommand is one file in jojlab/commands, which is loaded when it is asked for. Heavy imports
stand inside its function, so that `joj --help` answers at once.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import metadata
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from jojlab.command_line.lazy_group import lazy_group
from jojlab.foundation.errors import FINE, MACHINE_CANNOT, EndAsked, JojError, Signalled, signal_of
from jojlab.foundation.printable import printable

BROKEN_PIPE = 141  # 128 + SIGPIPE

# Every subcommand, in the order of `joj --help`: its name, and where its function stands.
COMMANDS = {
    "run": "jojlab.commands.run:run",
    "bill": "jojlab.commands.bill:bill",
    "advise": "jojlab.commands.advise:advise",
    "trace": "jojlab.commands.trace:trace",
    "record": "jojlab.commands.record:record",
    "replay": "jojlab.commands.replay:replay",
    "list": "jojlab.commands.list_:list_",
    "show": "jojlab.commands.show:show",
    "explain": "jojlab.commands.explain:explain",
    "report": "jojlab.commands.report:report",
    "diff": "jojlab.commands.diff:diff",
    "gate": "jojlab.commands.gate:gate",
    "query": "jojlab.commands.query:query",
    "export": "jojlab.commands.export:export",
    "doctor": "jojlab.commands.doctor:doctor",
    "cache": "jojlab.commands.cache:cache",
}

# The subcommands of `joj verify`.
VERIFICATIONS = {
    "attribution": "jojlab.commands.verify.attribution:attribution",
    "durability": "jojlab.commands.verify.durability:durability",
}

# The subcommands of `joj bench`.
BENCHES = {
    "sqlite": "jojlab.commands.bench.sqlite:sqlite",
    "sql": "jojlab.commands.bench.sql:sql",
    "file": "jojlab.commands.bench.file:file",
    "mobibench": "jojlab.commands.bench.mobibench:mobibench",
}

# The subcommands of `joj import`.
IMPORTS = {
    "strace": "jojlab.commands.import_.strace:strace",
    "mobigen": "jojlab.commands.import_.mobigen:mobigen",
    "sql": "jojlab.commands.import_.sql:sql",
    "blocks": "jojlab.commands.import_.blocks:blocks",
}

# The subcommands of `joj device`.
DEVICES = {
    "show": "jojlab.commands.device.show:show",
    "measure": "jojlab.commands.device.measure:measure",
    "calibrate": "jojlab.commands.device.calibrate:calibrate",
    "sensitivity": "jojlab.commands.device.sensitivity:sensitivity",
}

# The subcommands of `joj fleet`.
FLEET = {
    "serve": "jojlab.commands.fleet.serve:serve",
    "enrol": "jojlab.commands.fleet.enrol:enrol",
    "devices": "jojlab.commands.fleet.devices:devices",
    "revoke": "jojlab.commands.fleet.revoke:revoke",
    "report": "jojlab.commands.fleet.report:report",
    "device": "jojlab.commands.fleet.device:device",
    "simulate": "jojlab.commands.fleet.simulate:simulate",
    "demo": "jojlab.commands.fleet.demo:demo",
    "compact": "jojlab.commands.fleet.compact:compact",
}

HELP = """Measure what one COMMIT really costs on flash, and where it goes.

\b
Examples:
  joj run first-look
  joj bill --filesystem f2fs --journal-mode wal
  joj show runs/first-look
  joj bench sqlite /mnt/card --journal-mode wal
  joj doctor
"""

BENCH_HELP = """Run a workload on a real disk of this machine.

\b
Examples:
  joj bench sqlite .
  joj bench sql . --scripts my-app
  joj bench file /mnt/card --sync-mode fdatasync --repeat 5
"""
IMPORT_HELP = """Import what other tools recorded: calls, SQL or block traces.

\b
Examples:
  joj import strace app.strace -o runs/app
  joj import mobigen mobigen.out.facebook
  joj import sql 0.sql 1.sql --setup loading.sql -o app-sql
  joj import blocks sda.txt
"""
DEVICE_HELP = """Show, measure or fit device profiles (devices/NAME.toml).

\b
Examples:
  joj device show ufs-2.1
  joj device measure /dev/mmcblk0
  joj device sensitivity emmc-galaxy-s3
  joj device calibrate emmc-galaxy-s3
"""

VERIFY_HELP = """Check attribution and durability against the device itself.

\b
Examples:
  joj verify attribution
  joj verify attribution --host
  joj verify durability --set filesystem=ext4
"""

FLEET_HELP = """Collect from many devices, and report what they have in common.

\b
Examples:
  joj fleet enrol phone-1 --data /srv/fleet --out phone-1.token
  joj fleet serve --data /srv/fleet
  joj fleet devices --data /srv/fleet
  joj fleet report --data /srv/fleet --out fleet.html
  joj fleet simulate --devices 4 --days 97 --out made
"""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what ends a command into a message and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except JojError as error:
            print(f"joj: {printable(str(error))}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as error:
            ended = Signalled(signal_of(error))
            print(f"joj: {ended}", file=sys.stderr)
            raise typer.Exit(ended.exit_code) from None
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            # An error without a better message; a traceback would exit with 1, "changed".
            print(f"joj: {printable(str(error))}", file=sys.stderr)
            _forget_output()
            raise typer.Exit(MACHINE_CANNOT) from None
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except Exception:
            # The traceback helps to fix the fault; Python would exit with 1, "changed".
            traceback.print_exc()
            print("joj: a fault of joj's own, which the lines above locate", file=sys.stderr)
            raise typer.Exit(MACHINE_CANNOT) from None

    return run


def _end(number: int, _: FrameType | None) -> NoReturn:
    """Raise what a signal asks for, once: a second signal must not interrupt the clean-up."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise EndAsked(number)


def _forget_output() -> None:
    """Drop buffered output that cannot be written; Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    name="joj",
    cls=lazy_group(COMMANDS, guarded),
    help=HELP,
    epilog="Exit codes: 0 success; 1 an expectation did not hold; 2 usage error; "
    "3 this machine lacks something, or a case failed; 4 incomplete data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"joj {metadata.version('jojlab')}")
        raise typer.Exit(FINE)


@app.callback()
def joj(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Handle the options of joj itself; its help is HELP."""


for _name, _help, _commands in (
    ("bench", BENCH_HELP, BENCHES),
    ("verify", VERIFY_HELP, VERIFICATIONS),
    ("import", IMPORT_HELP, IMPORTS),
    ("device", DEVICE_HELP, DEVICES),
    ("fleet", FLEET_HELP, FLEET),
):
    _group = typer.Typer(
        help=_help,
        cls=lazy_group(_commands, guarded, with_own_flags={"mobibench"}),
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(_group, name=_name)


def main() -> NoReturn:
    """Run `joj`; SIGTERM and SIGHUP end it as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup(1) has it
            signal.signal(number, _end)
    if "_JOJ_COMPLETE" in os.environ:  # a shell asks how a line may go on: docs/install.md
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    app()
    sys.exit(0)
