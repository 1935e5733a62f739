"""joj report: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.run.summary import summarise
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE
from jojlab.report.page.html import write_report
from jojlab.trace.kept import Kept
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run", type=PATH, help="Run folder.")
@option("-o", "--out", metavar="FILE", type=PATH, help="File to write; default: RUN/report.html.")
def report(run: Path, out: Path | None) -> int:
    """Write the report of a run: one HTML file that needs no network.

    \b
    Examples:
      joj report runs/first-look
      joj report runs/first-look -o /srv/www/first-look.html

    Exit code 4 if events were lost, bytes are unattributed, or a case failed.
    """
    kept = Kept(Cache.default().analyses)
    summary = summarise(RunFolder.open(run), with_traffic=True, kept=kept)
    path = out or run / "report.html"
    write_report(path, summary, str(run))
    print(path)
    return INCOMPLETE if summary.incomplete or summary.unfinished else FINE
