"""joj import blocks: turns a block trace that another tool recorded into a run."""

from __future__ import annotations

import shutil
from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import free_folder
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.nearest import nearest
from jojlab.foundation.printable import json_text
from jojlab.trace.imports.trace_file import FORMATS, import_trace


@command()
@argument("file", type=PATH, help="Text output of blkparse or MOST.")
@option(
    "--format",
    "format_name",
    metavar="FORMAT",
    default="",
    help="blkparse or most; default: detected.",
)
@option("-o", "--out", metavar="RUN", type=PATH, help="Run folder; default: runs/NAME.")
@json_option("Print the counts as JSON.")
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
    if format_name and format_name not in FORMATS:
        raise UseError(
            f"--format {format_name!r} is unknown{nearest(format_name, FORMATS)}",
            f"one of: {', '.join(FORMATS)}",
        )
    if not file.is_file():
        raise UseError(f"{file}: no such file, or not a regular file", "name a file")
    folder = out or free_folder(Path("runs") / (file.stem or "trace"))
    try:
        _, imported = import_trace(file, folder, format_name)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)  # it was made just now
        raise
    if as_json:
        print(json_text({"run": str(folder), **vars(imported)}))
    else:
        counts = [f"{n} {name.replace('_', ' ')}" for name, n in imported.counts.items() if n]
        print(f"{imported.lines} lines of {imported.format}: {imported.requests} requests")
        print("\n".join([", ".join(counts), f"run  {folder}"]).lstrip())
        for reason in imported.reasons:
            print(f"incomplete: {reason}")
        for note in imported.untold:
            print(f"note: {note}")
    return INCOMPLETE if imported.reasons else FINE
