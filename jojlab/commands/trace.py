"""joj trace: what the disk was sent while a command ran, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from jojlab.errors import MachineError, UseError


def trace(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- COMMAND...]", help="What to run.")
    ] = None,
    device: Annotated[
        Path | None,
        typer.Option(metavar="DEV", readable=False, help="Disk to trace, or a partition of it."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            readable=False,
            help="Trace the disks it is on; by default where you are.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="RUN", help="Run folder; by default runs/trace."),
    ] = None,
    pid: Annotated[int | None, typer.Option(min=1, help="Trace until this process ends.")] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Trace for so long at most.")
    ] = None,
    totals: Annotated[
        bool,
        typer.Option(
            "--totals", help="No rows: sums of bytes by type and file, added up in the kernel."
        ),
    ] = False,
    ring_mib: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Memory for events not read yet; by default by the machine's."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was seen as JSON.")] = False,
) -> None:
    """Trace a real disk, and tell whose every byte was.

    Needs root and a kernel with BTF (Linux 5.17 or newer). All that the disks are sent is seen,
    whoever sends it. The command runs as who you are, in the current folder. Ctrl-C ends the
    tracing and keeps what was seen; so does a kill, but for the last seconds.

    \b
    Examples:
      joj trace -- sqlite3 a.db "insert into t values (1)"
      joj trace --directory /srv -o runs/install -- apt-get install -y hello
      joj trace --device /dev/sdb --duration 60
      joj trace --device /dev/mapper/vg-root -o runs/lvm -- sync
      joj trace --pid 4711 --json
      joj trace --totals -- fio load.fio
      joj show runs/trace; joj query runs/trace "SELECT path, size_bytes FROM files"

    The exit code is the command's, or 4 when it is 0 and something of the trace is missing.
    """
    from jojlab.commands.run import free_folder
    from jojlab.guest.image.ready import agent_path
    from jojlab.trace.live_run import begin, close

    command = command or []
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
    code = _attend(arguments)
    close(run)
    if run.path.exists():
        typer.echo(f"run {run.path}: joj show {run.path}", err=True)
    raise typer.Exit(code)


def _attend(arguments: list[str]) -> int:
    """Run the agent to its end; a Ctrl-C or a kill is its to answer, by keeping what it has."""
    agent = subprocess.Popen(arguments)
    handlers = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: agent.terminate()),
    }
    try:
        code = agent.wait()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
