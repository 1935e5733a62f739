"""joj import strace, mobigen, sql and blocks: what other tools recorded."""

from __future__ import annotations

from pathlib import Path

from jojlab.command_line import options as common
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError, refuse_unknown
from jojlab.foundation.printable import json_text, plural, public_fields
from jojlab.recording import sql_import
from jojlab.recording.folder import import_trace
from jojlab.trace.imports.trace_file import FORMATS
from jojlab.trace.imports.trace_file import import_trace as import_block_trace


@command()
@argument(
    "files", type=PATH, nargs=-1, required=True, help="strace's output; of -ff, all its files."
)
@option("-o, --out", "DIR", "New folder; default: runs/NAME.", PATH)
@option(
    "--directory",
    "PATH",
    "Where the program began, for relative paths, if the trace lacks -y.",
    PATH,
)
@flag("--strict", "End at the first line that cannot be read.")
@common.json("Print the counts as JSON.")
def strace(
    files: tuple[Path, ...], out: Path | None, directory: Path | None, strict: bool, as_json: bool
) -> int:
    """Import a trace of strace's as a recording, for replay and export.

    The best trace is that of strace -f -ttt -T -y -o FILE. Others are read as well: [pid N] or a
    column of numbers, -t, -tt, -r or no times, -ff, -x, -xx, -Y, -yy, -v; of a 32-bit machine, and
    of old versions. What was there before is inferred from what the calls did; docs/recording.md
    says how. Calls that are no file system calls are counted by name.

    \b
    Examples:
      strace -f -ttt -T -y -o app.strace ./app; joj import strace app.strace -o runs/app
      strace -ff -ttt -T -y -o log ./app; joj import strace log.*
      joj import strace phone.strace --directory /data/data/com.example
      joj export runs/app --format mobigen -o app.mobigen

    Exit code 2 if there is no call in the files; 4 if a line is bad, or if the trace lacks
    arguments or hands calls over to io_uring.
    """
    options = ["--directory", str(directory)] if directory else []
    options += ["--strict"] if strict else []
    with common.out_folder(out, Path("runs") / (files[0].stem or "trace")) as folder:
        return import_trace("strace", files, folder, *options, as_json=as_json)


@command()
@argument("file", type=PATH, help="A script that mobibench -g replays.")
@option("-o, --out", "DIR", "New folder; default: runs/NAME.", PATH)
@common.json("Print the counts as JSON.")
def mobigen(file: Path, out: Path | None, as_json: bool) -> int:
    """Import a script of MobiGen's as a recording.

    A script has thirteen calls and one descriptor table. Other calls are counted by name. It does
    not tell when calls ended, nor why they failed: a failed look-up is taken for ENOENT.

    \b
    Examples:
      joj import mobigen mobigen.out.facebook -o runs/facebook
      duckdb -c "SELECT name, count(*) FROM 'runs/facebook/calls/*.parquet' GROUP BY name"

    Exit code 2 if a line is none of a script's; the message names it.
    """
    with common.out_folder(out, Path("runs") / (file.name or "script")) as folder:
        return import_trace("mobigen", [file], folder, as_json=as_json)


@command()
@argument("files", type=PATH, nargs=-1, required=True, help="Scripts of SQL, one a thread.")
@option(
    "--setup",
    "PATH",
    "Script that makes and fills the tables; may come several times.",
    PATH,
    multiple=True,
)
@option("-o, --out", "DIR", "New folder; default: runs/NAME-sql.", PATH)
@common.json("Print the counts as JSON.")
def sql(files: tuple[Path, ...], setup: tuple[Path, ...], out: Path | None, as_json: bool) -> int:
    """Import scripts of SQL for the workload sql-recorded.

    A statement ends with a semicolon; where some lines lack it, every line is a statement. Each
    script gets a connection of its own to one database. What the workload does not take, such as
    PRAGMAs that are fields of a case, is left out and counted. Parameters (?) are NULL, as in
    SQLite's shell.

    \b
    Examples:
      joj import sql 0.sql 1.sql --setup loading.sql -o app-sql
      joj bill --workload sql-recorded --scripts app-sql

    Exit code 2 if a file holds something that is no statement; the message names its line. Exit
    code 4 if what was left out would have changed rows, such as those of a database that a script
    attaches in its middle.
    """
    with common.out_folder(
        out, Path("runs") / f"{files[0].stem}-sql", removed_on_error=True
    ) as folder:
        counts = sql_import.write(files, setup, folder)
    if as_json:
        summary = {"folder": str(folder), "statements": counts.statements}
        left_out = {"left_out": dict(counts.left_out), "missing": dict(counts.missing)}
        print(json_text({**summary, **left_out}))
    else:
        line = f"{plural(counts.statements, 'statement')}  {folder}"
        print("\n".join([line, *counts.lines()]))
    return FINE if counts.is_whole else INCOMPLETE


@command()
@argument("file", type=PATH, help="Text output of blkparse or MOST.")
@option(
    "--format", "FORMAT", "blkparse or most; default: detected.", default="", name="format_name"
)
@option("-o, --out", "RUN", "Run folder; default: runs/NAME.", PATH)
@common.json("Print the counts as JSON.")
def blocks(file: Path, format_name: str, out: Path | None, as_json: bool) -> int:
    """Import a block trace as a run.

    blkparse's default output names no owners: its blocks have type unknown. MOST's output has block
    types and file names. Neither has transactions, so there is no bill. A file may be compressed by
    gzip, or in UTF-16. Of a device whose driver takes bios, each bio is a request.

    \b
    Examples:
      blktrace -d /dev/sda -o - | blkparse -i - > sda.txt; joj import blocks sda.txt -o runs/sda
      joj import blocks result.po --format most -o runs/most
      joj show runs/most

    Exit code 2 if the format is unknown; 4 if a line cannot be read, or if the trace lacks
    something that its format has, such as completions after the end of the trace.
    """
    if format_name:
        refuse_unknown(format_name, FORMATS, f"--format {format_name!r} is unknown")
    if not file.is_file():
        raise UseError(f"{file}: no such file, or not a regular file", "name a file")
    with common.out_folder(
        out, Path("runs") / (file.stem or "trace"), removed_on_error=True
    ) as folder:
        _, imported = import_block_trace(file, folder, format_name)
    if as_json:
        print(json_text({"run": str(folder), **public_fields(imported, limits="untold")}))
    else:
        counts = [f"{n} {name.replace('_', ' ')}" for name, n in imported.counts.items() if n]
        print(f"{imported.lines} lines of {imported.format}: {imported.requests} requests")
        print("\n".join([", ".join(counts), f"run  {folder}"]).lstrip())
        for reason in imported.reasons:
            print(f"incomplete: {reason}")
        for note in imported.limits:
            print(f"note: {note}")
    return INCOMPLETE if imported.reasons else FINE
