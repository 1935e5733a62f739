"""joj show: the figures of a run, or of one of its cases, or the hash of its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from jojlab.errors import FINE, INCOMPLETE, UseError


def show(
    run: Annotated[Path, typer.Argument(help="Folder that joj run made.")],
    case: Annotated[
        str, typer.Option(metavar="CASE_ID", help="Every figure and the bill of one case.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    hash_only: Annotated[
        bool, typer.Option("--hash", help="Print the sha256 of the tables' contents alone.")
    ] = False,
) -> None:
    """Show the figures of a run: median over the seeds, and their spread.

    \b
    Examples:
      joj show runs/first-look
      joj show runs/first-look --case ext4-wal
      joj show runs/first-look --json | jq '.cases[].figures.throughput_tps'
      joj show runs/first-look --hash

    Exit code 4 when events were lost, bytes have no owner, or a case failed.
    """
    from jojlab.trace.run_folder import RunFolder

    folder = RunFolder.open(run)
    if hash_only:
        if case or as_json:
            raise UseError("--hash stands alone", "leave out --case and --json")
        print(folder.content_hash())
        return
    from jojlab.analysis.summary import summarise, summary_json
    from jojlab.report.terminal import print_case, print_summary, print_warnings, terminal

    summary = summarise(folder, only=case)
    if as_json:
        print(json.dumps(summary_json(summary), indent=1, ensure_ascii=False))
    elif len(summary.cases) == 1:
        print_case(terminal(), summary.cases[0])
        print_warnings(terminal(), summary)
    else:
        print_summary(terminal(), summary)
    raise typer.Exit(INCOMPLETE if summary.incomplete or summary.unfinished else FINE)
