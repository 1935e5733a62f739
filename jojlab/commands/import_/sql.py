"""joj import sql: makes a folder that a workload plays of scripts of SQL, one a thread."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from jojlab.foundation.errors import FINE, INCOMPLETE
from jojlab.foundation.printable import json_text, plural


def sql(
    files: Annotated[list[Path], typer.Argument(help="Scripts of SQL, one a thread.")],
    setup: Annotated[
        list[Path] | None,
        typer.Option(help="Script that makes and fills the tables; may come several times."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="New folder; default: runs/NAME-sql."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
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
    from jojlab.command_line.out_folder import free_folder
    from jojlab.recording import sql_import

    folder = out or free_folder(Path("runs") / f"{files[0].stem}-sql")
    try:
        counts = sql_import.write(files, setup or [], folder)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)  # it was made just now
        raise
    if as_json:
        said = {"folder": str(folder), "statements": counts.statements}
        left_out = {"left_out": dict(counts.left_out), "missing": dict(counts.missing)}
        print(json_text({**said, **left_out}))
    else:
        told = f"{plural(counts.statements, 'statement')}  {folder}"
        print("\n".join([told, *counts.lines()]))
    raise typer.Exit(FINE if counts.is_whole else INCOMPLETE)
