"""The command `joj`: its subcommands, and how errors, signals and closed pipes end it.

A subcommand is one file in jojlab/commands. Heavy imports stand inside its function, so that
`joj --help` answers at once.
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

from jojlab.command_line.field_options import GroupedCommand
from jojlab.commands import (
    bill,
    cache,
    diff,
    doctor,
    export,
    list_,
    query,
    record,
    replay,
    report,
    run,
    show,
    trace,
)
from jojlab.commands.bench import file, mobibench, sql, sqlite
from jojlab.commands.device import calibrate, measure
from jojlab.commands.device import show as show_device
from jojlab.commands.import_ import blocks, mobigen, strace
from jojlab.commands.import_ import sql as import_sql
from jojlab.commands.verify import attribution, durability
from jojlab.foundation.errors import FINE, MACHINE_CANNOT, EndAsked, JojError, Signalled, signal_of
from jojlab.foundation.printable import printable

BROKEN_PIPE = 141  # 128 + SIGPIPE

# Every subcommand, in the order of `joj --help`.
COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("run", run.run),
    ("bill", bill.bill),
    ("trace", trace.trace),
    ("record", record.record),
    ("replay", replay.replay),
    ("list", list_.list_),
    ("show", show.show),
    ("report", report.report),
    ("diff", diff.diff),
    ("query", query.query),
    ("export", export.export),
    ("doctor", doctor.doctor),
    ("cache", cache.cache),
)

# The subcommands of `joj verify`.
VERIFICATIONS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("attribution", attribution.attribution),
    ("durability", durability.durability),
)

# The subcommands of `joj bench`.
BENCHES: tuple[tuple[str, Callable[..., None]], ...] = (
    ("sqlite", sqlite.sqlite),
    ("sql", sql.sql),
    ("file", file.file),
    ("mobibench", mobibench.mobibench),
)

# The subcommands of `joj import`.
IMPORTS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("strace", strace.strace),
    ("mobigen", mobigen.mobigen),
    ("sql", import_sql.sql),
    ("blocks", blocks.blocks),
)

# The subcommands of `joj device`.
DEVICES: tuple[tuple[str, Callable[..., None]], ...] = (
    ("show", show_device.show),
    ("measure", measure.measure),
    ("calibrate", calibrate.calibrate),
)

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
  joj device calibrate emmc-galaxy-s3
"""

VERIFY_HELP = """Check attribution and durability against the device itself.

\b
Examples:
  joj verify attribution
  joj verify attribution --host
  joj verify durability --set filesystem=ext4
"""

app = typer.Typer(
    name="joj",
    help=HELP,
    epilog="Exit codes: 0 success; 1 an expectation did not hold; 2 usage error; "
    "3 this machine lacks something, or a case failed; 4 incomplete data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


for _name, _command in COMMANDS:
    app.command(_name, cls=GroupedCommand)(guarded(_command))


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


_bench = typer.Typer(help=BENCH_HELP, no_args_is_help=True, rich_markup_mode=None)
for _name, _command in BENCHES:
    # The flags of mobibench are not ours: it reads them itself.
    _settings = {"ignore_unknown_options": True} if _name == "mobibench" else None
    _bench.command(_name, cls=GroupedCommand, context_settings=_settings)(guarded(_command))
app.add_typer(_bench, name="bench")
_verify = typer.Typer(help=VERIFY_HELP, no_args_is_help=True, rich_markup_mode=None)
for _name, _command in VERIFICATIONS:
    _verify.command(_name)(guarded(_command))
_verify.callback()(lambda: None)  # typer would drop the name of a lone subcommand
app.add_typer(_verify, name="verify")
_import = typer.Typer(help=IMPORT_HELP, no_args_is_help=True, rich_markup_mode=None)
for _name, _command in IMPORTS:
    _import.command(_name)(guarded(_command))
app.add_typer(_import, name="import")
_device = typer.Typer(help=DEVICE_HELP, no_args_is_help=True, rich_markup_mode=None)
for _name, _command in DEVICES:
    _device.command(_name)(guarded(_command))
app.add_typer(_device, name="device")


def main() -> NoReturn:
    """Run `joj`; SIGTERM and SIGHUP end it as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup(1) has it
            signal.signal(number, _end)
    app()
    sys.exit(0)
