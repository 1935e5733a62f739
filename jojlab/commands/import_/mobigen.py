"""joj import mobigen: makes a recording of a script of MobiGen's."""

from __future__ import annotations

from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import out_folder
from jojlab.recording.imports import import_trace


@command()
@argument("file", type=PATH, help="A script that mobibench -g replays.")
@option("-o", "--out", metavar="DIR", type=PATH, help="New folder; default: runs/NAME.")
@json_option("Print the counts as JSON.")
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
    with out_folder(out, Path("runs") / (file.name or "script")) as folder:
        code = import_trace("mobigen", [file], folder, as_json=as_json)
    return code
