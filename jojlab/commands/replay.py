"""joj replay: makes a recording's file system calls again, in a directory of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from jojlab.analysis.run.replayed import replayed
from jojlab.analysis.run.summary import summarise
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.live_run import run_with_progress
from jojlab.command_line.options import PATH, json_option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.printable import json_text
from jojlab.live.bench import Bench
from jojlab.live.fields import live_settings
from jojlab.recording.folder import Recording
from jojlab.report.page.html import write_report
from jojlab.report.terminal.console import terminal
from jojlab.report.terminal.replay import print_replay

WHERE = "joj replay"


@command()
@argument(
    "recording", metavar="RECORDING", type=PATH, help="Folder of a recording, or a MobiGen script."
)
@option(
    "--directory",
    metavar="DIR",
    type=PATH,
    required=True,
    help="Directory on the filesystem to use.",
)
@option(
    "--timing",
    metavar="recorded|none|SCALE",
    default="recorded",
    help="Times as recorded, none (as fast as possible), or times this number.",
)
@option(
    "--recorded-root",
    metavar="DIR",
    default="/",
    help="Replay only what is below this recorded directory.",
)
@option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    help="Fixes contents that were not kept.",
)
@option("-o", "--out", metavar="RUN", type=PATH, help="Keep the tables in this new run folder.")
@json_option()
def replay(
    recording: Path,
    directory: Path,
    timing: str,
    recorded_root: str,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Replay the recorded calls of a program on a disk of this machine.

    The files that were there before are made first, in a new directory below DIR, which is removed
    at the end. Every recorded path leads below it. Threads, descriptors and the order of calls that
    depend on each other are kept. What is written is what joj record --data keep kept; without
    that, contents are made from the seed. No root is needed.

    \b
    Examples:
      joj record -o runs/clone -- git clone here there
      joj replay runs/clone --directory /mnt/card
      joj replay runs/clone --directory /mnt/card --timing none --json
      joj replay runs/clone --directory /mnt/card --timing 0.5
      joj replay runs/clone --directory /mnt/card --recorded-root /home/me/project
      joj replay mobigen.out.facebook --directory .
      joj bill --workload replay --recording runs/clone --filesystem f2fs    # in the lab

    Exit code 2 for a usage error, 3 if the machine fails, 4 if calls were left out.
    """
    if not recording.exists():
        raise UseError(f"{WHERE}: {recording}: not there", "name what joj record wrote")
    what = "recording" if recording.is_dir() else "script"
    given = {"workload": "replay", what: str(recording.resolve()), **_timing(timing)}
    given["recorded_root"] = recorded_root
    if recording.is_dir():
        Recording.open(recording).refuse_sql(WHERE)
    settings = live_settings(given, WHERE)
    with Cache.default().work_dir() as temporary:
        run = run_with_progress(
            Bench("replay", directory, settings, [seed]), out or temporary / "run"
        )
        (_, _, capture) = next(run.captures())
        found = replayed(capture)
        if out:
            write_report(run.path / "report.html", summarise(run), str(run.path))
        if as_json:
            print(json_text(found.json()))
        else:
            print_replay(terminal(), found)
    if out and not as_json:
        print(f"\nrun     {out}\nreport  {out / 'report.html'}")
    return INCOMPLETE if capture.incomplete else FINE


def _timing(word: str) -> dict[str, str | int]:
    """Return the fields of a timing; raises UseError for what is none."""
    if word in ("recorded", "none"):
        return {"timing": word}
    try:
        percent = round(float(word) * 100)
    except (ValueError, OverflowError):
        percent = 0
    if not 1 <= percent <= 100_000:
        raise UseError(
            f"{WHERE}: --timing {word}: no timing",
            "recorded, none, or a number from 0.01 to 1000 that times are multiplied by",
        )
    return {"timing": "recorded", "timing_percent": percent}
