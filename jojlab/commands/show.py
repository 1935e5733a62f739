"""joj show: the figures of a run, or of one of its cases, or the hash of its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jojlab.errors import FINE, INCOMPLETE, UseError

if TYPE_CHECKING:
    from jojlab.analysis.run.summary import RunSummary
    from jojlab.trace.run_folder import RunFolder


def show(
    run: Annotated[Path, typer.Argument(help="Folder that joj run made.")],
    case: Annotated[
        str, typer.Option(metavar="CASE_ID", help="Every figure and the bill of one case.")
    ] = "",
    characterise: Annotated[
        bool, typer.Option("--characterise", help="What kind of I/O it was, by count and bytes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    hash_only: Annotated[
        bool, typer.Option("--hash", help="Print the sha256 of the tables' contents alone.")
    ] = False,
) -> None:
    """Show a run's figures: median over the seeds, and their spread.

    \b
    Examples:
      joj show runs/first-look
      joj show runs/first-look --case ext4-wal
      joj show runs/first-look --json | jq '.cases[].figures.throughput_tps'
      joj show runs/first-look --characterise
      joj show runs/first-look --hash

    --characterise counts reads and writes by file kind, block type, who waits, sequential or
    random, and size. A run without transactions, such as an imported trace, is shown so anyway.

    Exit code 4 when events were lost, bytes have no owner, or a case failed.
    """
    from jojlab.trace.run_folder import RunFolder

    folder = RunFolder.open(run)
    if hash_only:
        if case or as_json or characterise:
            raise UseError("--hash stands alone", "leave out the other options")
        print(folder.content_hash())
        return
    from jojlab.analysis.run.summary import summarise, summary_json
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.summary import print_case, print_summary, print_warnings

    summary = summarise(folder, only=case)
    captured = any(entry.seeds for entry in summary.cases)
    if captured and (characterise or not (summary.measured or as_json)):
        _show_kinds(folder, summary, as_json=as_json)
    elif as_json:
        print(json.dumps(summary_json(summary), indent=1, ensure_ascii=False))
    elif len(summary.cases) == 1:
        print_case(terminal(), summary.cases[0])
        print_warnings(terminal(), summary)
    else:
        print_summary(terminal(), summary)
    raise typer.Exit(INCOMPLETE if summary.incomplete or summary.unfinished else FINE)


def _show_kinds(folder: RunFolder, summary: RunSummary, *, as_json: bool) -> None:
    """Print what kind of I/O the cases of `summary` made."""
    from jojlab.analysis.traffic.characterisation import characterisation_json, characterisations
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.kinds import print_kinds
    from jojlab.report.terminal.summary import print_warnings
    from jojlab.trace.run_tables import open_tables

    found = characterisations(open_tables(folder))
    cases = [case for case in summary.cases if case.case_id in found]
    if as_json:
        document = [
            {
                "case_id": case.case_id,
                "case": dict(case.case),
                "characterisation": characterisation_json(found[case.case_id]),
                "lost_events": case.missing.lost_events,
                "unattributed_bytes": case.missing.unattributed_bytes,
            }
            for case in cases
        ]
        print(json.dumps({"cases": document}, indent=1, ensure_ascii=False))
        return
    for case in cases:
        print_kinds(terminal(), case.label, found[case.case_id])
        print()
    print_warnings(terminal(), summary)
