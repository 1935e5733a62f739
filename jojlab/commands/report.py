"""joj report: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jojlab.foundation.errors import FINE, INCOMPLETE


def report(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FILE", help="File to write; default: RUN/report.html."
        ),
    ] = None,
) -> None:
    """Write the report of a run: one HTML file that needs no network.

    \b
    Examples:
      joj report runs/first-look
      joj report runs/first-look -o /srv/www/first-look.html

    Exit code 4 if events were lost, bytes are unattributed, or a case failed.
    """
    from jojlab.analysis.run.summary import summarise
    from jojlab.foundation.cache import Cache
    from jojlab.report.page.html import write_report
    from jojlab.trace.kept import Kept
    from jojlab.trace.run_folder import RunFolder

    kept = Kept(Cache.default().analyses)
    summary = summarise(RunFolder.open(run), with_traffic=True, kept=kept)
    path = out or run / "report.html"
    write_report(path, summary, str(run))
    print(path)
    raise typer.Exit(INCOMPLETE if summary.incomplete or summary.unfinished else FINE)
