"""joj import sql: makes a folder that a workload plays of scripts of SQL, one a thread."""

from __future__ import annotations

import shutil
from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import free_folder
from jojlab.foundation.errors import FINE, INCOMPLETE
from jojlab.foundation.printable import json_text, plural
from jojlab.recording import sql_import


@command()
@argument("files", type=PATH, nargs=-1, required=True, help="Scripts of SQL, one a thread.")
@option(
    "--setup",
    type=PATH,
    multiple=True,
    help="Script that makes and fills the tables; may come several times.",
)
@option("-o", "--out", metavar="DIR", type=PATH, help="New folder; default: runs/NAME-sql.")
@json_option("Print the counts as JSON.")
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
    return FINE if counts.is_whole else INCOMPLETE
