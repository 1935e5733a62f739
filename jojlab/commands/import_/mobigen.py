"""joj import mobigen: makes a recording of a script of MobiGen's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def mobigen(
    file: Annotated[Path, typer.Argument(help="A script that mobibench -g replays.")],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="New folder; default: runs/NAME."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Import a script of MobiGen's as a recording.

    A script has thirteen calls and one descriptor table. Other calls are counted by name. It does
    not tell when calls ended, nor why they failed: a failed look-up is taken for ENOENT.

    \b
    Examples:
      joj import mobigen mobigen.out.facebook -o runs/facebook
      duckdb -c "SELECT name, count(*) FROM 'runs/facebook/calls/*.parquet' GROUP BY name"

    Exit code 2 if a line is none of a script's; the message names it.
    """
    from jojlab.command_line.out_folder import out_folder
    from jojlab.recording.imports import import_trace

    with out_folder(out, Path("runs") / (file.name or "script")) as folder:
        code = import_trace("mobigen", [file], folder, as_json=as_json)
    raise typer.Exit(code)
