"""joj export: writes a capture in the format of another tool."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.printable import nearest, plural, printable
from jojlab.recording import mobigen, sql_export
from jojlab.recording.folder import Recording
from jojlab.trace.exports.capture_file import FORMATS, chosen_capture
from jojlab.trace.exports.capture_file import export as write
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run", type=PATH, help="Run folder, or a recording's.")
@option(
    "--format",
    "format_name",
    metavar="FORMAT",
    required=True,
    help="perfetto, iolog, mobigen or sql.",
)
@option("--case", metavar="CASE_ID", default="", help="Case; optional if the run has only one.")
@option("--seed", metavar="N", type=int, help="Seed; default: the first.")
@option(
    "-o",
    "--out",
    metavar="FILE",
    type=PATH,
    help="File, or folder; default: in a run, beside a recording.",
)
def export(run: Path, format_name: str, case: str, seed: int | None, out: Path | None) -> int:
    """Write a capture or a recording in the format of another tool.

    A capture becomes a Perfetto trace or fio's I/O log; a recording, a script of MobiGen's, or
    scripts of SQL.

    perfetto: one track per slot of a device's queue, and per thread its transactions and the calls
    that waited. Arrows link a call to its requests. Open the file in Perfetto's viewer.

    iolog: fio replays it on another device, with the timing of the capture. What fio has no word
    for, such as an erase of raw NAND, is left out and counted.

    mobigen: of a recording (joj record), a script that mobibench -g replays. Calls that such a
    script cannot express are counted.

    sql: of a recording with --sql, a folder of scripts, one a connection, with bound values and
    think times, and the settings that SQLite had. The workload sql-recorded plays them, in the
    recorded order of commits. What a script does not take is counted.

    \b
    Examples:
      joj export runs/first-look --case ext4-wal-fresh-fsync --format perfetto -o wal.perfetto-trace
      joj export runs/sda --format iolog -o sda.iolog
      fio --name=again --read_iolog=sda.iolog --replay_redirect=/dev/DISK   # overwrites DISK
      joj export runs/recording --format mobigen -o app.mobigen
      joj export runs/recording --format sql -o app-sql

    Exit code 4 if the capture is incomplete: then the file is incomplete too. So are scripts of a
    recording that began with a database which was there, and such as lack statements that changed
    rows.
    """
    if out is not None and format_name != "sql" and not out.parent.is_dir():
        raise UseError(f"--out {out}: {out.parent} is no directory", "make it, or name another")
    if format_name == "mobigen":
        return _export_calls(run, out)
    if format_name == "sql":
        return _export_statements(run, out)
    if format_name not in FORMATS:
        raise UseError(
            f"--format {format_name!r} is unknown{nearest(format_name, FORMATS)}",
            f"one of: {', '.join([*FORMATS, 'mobigen', 'sql'])}",
        )
    capture = chosen_capture(RunFolder.open(run), case, seed)
    name = f"{capture.folder.parent.name}-{capture.folder.name}{FORMATS[format_name].SUFFIX}"
    path = out or run / name
    exported = write(capture, path, format_name)
    print(f"{plural(exported.requests, 'request')}  {path}")
    for operation, count in exported.left_out.items():
        told = f"{plural(count, 'request')} of {operation}"
        print(f"left out: {told}: {format_name} has no such operation")
    return INCOMPLETE if capture.incomplete else FINE


def _export_calls(folder: Path, out: Path | None) -> int:
    """Write a recording as MobiGen's script; return the exit code."""

    recording = Recording.open(folder)
    path = out or _sibling(folder, mobigen.SUFFIX)
    with path.open("wb") as stream:
        exported = mobigen.write(recording, stream)
    print(f"{plural(exported.lines - exported.opened_before, 'call')}  {path}")
    if exported.opened_before:
        print(f"open before, a line each: {plural(exported.opened_before, 'file')}")
    if carried := exported.carried.total():
        print(f"without a line, as dup and lseek: {plural(carried, 'call')}")
    return _left_out(recording, exported.left_out)


def _export_statements(folder: Path, out: Path | None) -> int:
    """Write a recording's statements as scripts; return the exit code."""

    recording = Recording.open(folder)
    path = out or _sibling(folder, "-sql")
    counts = sql_export.write(recording, path)
    print(f"{plural(counts.statements, 'statement')}  {path}")
    for line in counts.lines():
        print(printable(line))
    code = _left_out(recording, Counter())
    return code if counts.is_whole else INCOMPLETE


def _sibling(folder: Path, ending: str) -> Path:
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(named.name + ending)


def _left_out(recording: Recording, left_out: Counter[str]) -> int:
    """Print what an export lacks, and what its recording lacked; return the exit code."""
    for what, count in left_out.most_common():
        print(f"left out: {count} {what}")
    for reason in recording.incomplete_reasons:
        print(f"incomplete: {reason}")
    return INCOMPLETE if recording.incomplete_reasons else FINE
