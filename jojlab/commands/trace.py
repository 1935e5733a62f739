"""joj trace: traces a real disk of this machine while a command runs."""

from __future__ import annotations

import os
from pathlib import Path

import click

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.traffic.characterisation import characterisations
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import free_folder
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import agent_path
from jojlab.foundation.printable import printable
from jojlab.live.agent import attend
from jojlab.report.answer import answer_lines
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import begin, close


@command()
@argument("command", metavar="[-- COMMAND...]", nargs=-1, help="Command to run.")
@option(
    "--device",
    metavar="DEV",
    type=click.Path(readable=False, path_type=Path),
    help="Trace this disk, or this partition's disk.",
)
@option(
    "--directory",
    metavar="DIR",
    type=click.Path(readable=False, path_type=Path),
    help="Trace the disks that hold DIR; default: the current directory.",
)
@option("-o", "--out", metavar="RUN", type=PATH, help="Run folder; default: runs/trace.")
@option("--pid", metavar="N", type=click.IntRange(min=1), help="Trace until this process ends.")
@option(
    "--duration",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    help="Trace for at most this long.",
)
@option("--totals", is_flag=True, help="Keep no rows: the kernel adds up bytes by type and file.")
@option(
    "--ring-mib",
    metavar="N",
    type=click.IntRange(1, 1024),
    help="Buffer for unread events; default: by memory and processors.",
)
@json_option("Print the summary as JSON.")
def trace(
    command: tuple[str, ...],
    device: Path | None,
    directory: Path | None,
    out: Path | None,
    pid: int | None,
    duration: float | None,
    totals: bool,
    ring_mib: int | None,
    as_json: bool,
) -> int:
    """Trace a real disk and attribute every byte of its I/O.

    Needs root and a kernel with BTF (Linux 5.10 or newer). It traces all I/O of the disks, from
    every process. The command runs as the current user, in the current folder. Ctrl-C ends the
    tracing and keeps what was traced; a kill loses only the last seconds.

    \b
    Examples:
      joj trace -- sqlite3 a.db "insert into t values (1)"
      joj trace --directory /srv -o runs/install -- apt-get install -y hello
      joj trace --device /dev/sdb --duration 60
      joj trace --device /dev/mapper/vg-root -o runs/lvm -- sync
      joj trace --pid 4711 --json
      joj trace --totals -- fio load.fio
      joj show runs/trace; joj query runs/trace "SELECT path, size_bytes FROM files"

    The exit code is the command's; if that is 0 but the trace is incomplete, it is 4.
    """
    if device and directory:
        raise UseError("--device and --directory exclude each other", "leave one out")
    if not command and pid is None and duration is None:
        raise UseError("nothing says when to end", "name a command after --, --pid or --duration")
    if os.geteuid() != 0:
        raise MachineError("only root may load the tracer into the kernel", "sudo joj trace ...")
    agent = agent_path()
    subject = " ".join(command) if command else f"process {pid}" if pid else "everybody"
    where = str(device or directory or Path.cwd())
    run, tables = begin(out or free_folder(Path("runs") / "trace"), subject, where, command)
    options = {
        "--device": device,
        "--directory": directory,
        "--pid": pid,
        "--duration": duration,
        "--ring-mib": ring_mib,
    }
    arguments = [str(agent), "trace", "--output", str(tables), "--parent", str(os.getpid())]
    for name, value in options.items():
        arguments += [name, str(value)] if value is not None else []
    arguments += ["--totals"] if totals else []
    arguments += ["--json"] if as_json else []
    arguments += ["--", *command] if command else []
    code = attend(arguments)
    close(run)
    if run.path.exists():
        if not as_json:
            summary = summarise(run, figures_only=True)
            lines = answer_lines(summary, characterisations(Dataset.from_runs(run)))
            # Standard output is the command's own.
            for line in lines:
                click.echo(printable(line), err=True)
        click.echo(f"run {run.path}: joj show {run.path}", err=True)
    return code
