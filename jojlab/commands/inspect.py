"""joj inspect: what lies under a database or a directory, before anything is measured."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.foundation.printable import json_text, printable
from jojlab.inspection.sqlite_library import DEFAULT_LIBRARY
from jojlab.inspection.target import inspect_target
from jojlab.report.inspection import answer, facts

_COLUMNS = 100


@command()
@argument("path", type=PATH, default=Path("."), metavar="[PATH]", help="A database or a folder.")
@option(
    "--library",
    metavar="FILE",
    default=DEFAULT_LIBRARY,
    help="SQLite of the app: a file, or a name for the loader. It is loaded: its code runs.",
)
@option("--sync", "try_sync", is_flag=True, help="Time 64 syncs of a file that is made there.")
@json_option()
def inspect(path: Path, library: str, try_sync: bool, as_json: bool) -> None:
    """Show what lies under a database or a folder, and what it means.

    It reads the file's header, /proc and /sys; it opens no database and needs no root. With --sync
    it makes a file in the folder, and removes it.

    \b
    Examples:
      joj inspect app.db
      joj inspect app.db --sync
      joj inspect app.db --library /opt/app/libsqlite3.so
      joj inspect /mnt/card --json

    Exit code 2 for what is no file or folder.
    """
    target = inspect_target(path, library, try_sync=try_sync)
    lines = answer(target)
    if as_json:
        print(json_text({"in_short": lines, **asdict(target)}, default=str))
        return
    for line in lines:
        print("\n".join(textwrap.wrap(line, _COLUMNS, subsequent_indent="  ")))
    print()
    for fact in facts(target):
        words = f"{fact.name:<14} {printable(fact.value)}"
        if fact.meaning:
            words += f": {printable(fact.meaning)}"
        if fact.command:
            words += f" ({fact.command})"
        print("\n".join(textwrap.wrap(words, _COLUMNS, subsequent_indent=" " * 15)))
