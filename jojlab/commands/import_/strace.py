"""joj import strace: makes a recording of a program's calls, as strace printed them."""

from __future__ import annotations

from pathlib import Path

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.command_line.out_folder import out_folder
from jojlab.recording.imports import import_trace


@command()
@argument(
    "files", type=PATH, nargs=-1, required=True, help="strace's output; of -ff, all its files."
)
@option("-o", "--out", metavar="DIR", type=PATH, help="New folder; default: runs/NAME.")
@option(
    "--directory",
    type=PATH,
    help="Where the program began, for relative paths, if the trace lacks -y.",
)
@option("--strict", is_flag=True, help="End at the first line that cannot be read.")
@json_option("Print the counts as JSON.")
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
    with out_folder(out, Path("runs") / (files[0].stem or "trace")) as folder:
        code = import_trace("strace", files, folder, *options, as_json=as_json)
    return code
