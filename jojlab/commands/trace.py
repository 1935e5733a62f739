"""joj trace: traces a real disk of this machine while a command runs."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from click import FloatRange, IntRange

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.traffic.characterisation import characterisations
from jojlab.analysis.traffic.live import live_json
from jojlab.command_line import options as common
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import agent_path
from jojlab.live.agent import attend, option_words
from jojlab.report.answer import answer_lines
from jojlab.report.bill import print_statement_costs
from jojlab.report.cheaper import cheaper_command
from jojlab.report.live_trace import print_live_trace
from jojlab.report.page import write_report
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.shared.short_answer import print_answer
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import SQL_FOLDER, RunFolder, begin, close

_MEMORY = Path("/dev/shm")
_PAGE = "report.html"
_PLACE = click.Path(readable=False, path_type=Path)


@command()
@argument("command", metavar="[-- COMMAND...]", nargs=-1, help="Command to run.")
@option("--device", "DEV", "Trace this disk, or this partition's disk.", _PLACE)
@option(
    "--directory", "DIR", "Trace the disks that hold DIR; default: the current directory.", _PLACE
)
@option("-o, --out", "RUN", "Run folder; default: runs/trace.", PATH)
@option("--pid", "N", "Trace until this process ends.", IntRange(1))
@option("--duration", "SECONDS", "Trace for at most this long.", FloatRange(0))
@flag("--sql", "Also record the command's SQL: which statement cost what.")
@flag("--totals", "Keep no rows: the kernel adds up bytes by type and file.")
@option(
    "--ring-mib",
    "N",
    "Buffer for unread events; default: by memory and processors.",
    IntRange(1, 1024),
)
@common.json("Print the summary as JSON.")
def trace(
    command: tuple[str, ...],
    device: Path | None,
    directory: Path | None,
    out: Path | None,
    pid: int | None,
    duration: float | None,
    sql: bool,
    totals: bool,
    ring_mib: int | None,
    as_json: bool,
) -> int:
    """Trace a real disk: what a program's commits cost, and whose every byte is.

    Needs root and a kernel with BTF (Linux 5.10 or newer). It traces all I/O of the disks, from
    every process; the bill is of the command or the process and its children, else of everybody.
    The command runs as the current user, in the current folder. Ctrl-C ends the tracing and keeps
    what was traced; a kill loses only the last seconds.

    \b
    Examples:
      joj trace -- sqlite3 a.db "insert into t values (1)"
      joj trace --sql -- python3 app.py
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
    if sql and (not command or totals):
        raise UseError("--sql is of a command, with rows", "name one after --, without --totals")
    if os.geteuid() != 0:
        # python -m jojlab has the path of a module there.
        program = sys.argv[0] if Path(sys.argv[0]).name == "joj" else "joj"
        line = shlex.join(["sudo", program, *sys.argv[1:]])
        raise MachineError("only root may load the tracer into the kernel", line)
    agent = agent_path()
    subject = " ".join(command) if command else f"process {pid}" if pid else "everybody"
    where = str(device or directory or Path.cwd())
    folder = out or common.free_folder(Path("runs") / "trace")
    run, tables = begin(folder, subject, where, command, has_transactions=not totals)
    options = {"--device": device, "--directory": directory, "--pid": pid, "--duration": duration}
    arguments = [str(agent), "trace", "--output", str(tables), "--parent", str(os.getpid())]
    arguments += option_words({**options, "--ring-mib": ring_mib, "--totals": totals})
    with contextlib.ExitStack() as beside:
        place = beside.enter_context(tempfile.TemporaryDirectory(prefix="joj-"))
        summary = Path(place) / "summary.json"
        arguments += ["--summary", str(summary)]
        recording = beside.enter_context(_memory_folder()) / SQL_FOLDER if sql else None
        arguments += ["--sql", str(recording)] if recording else []
        arguments += ["--", *command] if command else []
        code = attend(arguments)
        close(run)
        if run.path.exists():
            if recording and recording.exists():
                shutil.copytree(recording, run.path / SQL_FOLDER)
            sums = json.loads(summary.read_text()) if summary.exists() else {}
            _print_summary(run, sums, as_json)
            click.echo(f"run     {run.path}", err=True)
            click.echo(f"report  {run.path / _PAGE}", err=True)
    return code


@contextlib.contextmanager
def _memory_folder() -> Iterator[Path]:
    """Yield a folder in memory, so that what is written there is on no traced disk.

    Raises MachineError where a library cannot be loaded from there.
    """
    if not _MEMORY.is_mount() or os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        raise MachineError(
            f"--sql: {_MEMORY} is no filesystem in memory from which libraries can be loaded",
            f"mount -t tmpfs tmpfs {_MEMORY}, or mount -o remount,exec {_MEMORY}",
        )
    with tempfile.TemporaryDirectory(prefix="joj-", dir=_MEMORY) as place:
        Path(place).chmod(0o711)  # the command may go on as another user
        yield Path(place)


def _print_summary(run: RunFolder, sums: Mapping[str, Any], as_json: bool) -> None:
    """Write the page, and print the short answer, one small table and details.

    They go to standard error: standard output is the command's own. `sums` are of the agent; with
    `as_json` they are printed, with the answer, as JSON on standard output.
    """
    summary = summarise(run)
    write_report(run.path / _PAGE, summary, str(run.path))
    lines = answer_lines(summary, characterisations(Dataset.from_runs(run)))
    [case] = summary.cases
    if as_json:
        more = {"live": live_json(case.live)} if case.live else {}
        if case.statements:
            more["statements"] = msgspec.to_builtins(case.statements)
        click.echo(json.dumps({"in_short": lines, **sums, **more}))
        return
    console = terminal(READABLE, stderr=True)
    print_answer(console, lines)
    if case.statements:
        print_statement_costs(console, case.statements)
        click.echo(err=True)
    print_live_trace(console, case)
    if cheaper := cheaper_command(summary):
        click.echo(f"to measure what is cheaper in the lab:\n  {cheaper}", err=True)
    for line in sums.get("details", ()):
        console.print(line, markup=False)
