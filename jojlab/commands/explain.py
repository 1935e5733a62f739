"""joj explain: the typical commit of a case as a story in sentences."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from jojlab.foundation.errors import FINE, INCOMPLETE, DataError, UseError
from jojlab.foundation.printable import json_text


def explain(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    case: Annotated[
        str, typer.Option(metavar="CASE_ID", help="Which case; needed where there are several.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe the typical commit of a case in sentences, write by write.

    It is the commit whose requests and bytes, and then latency, are nearest to the medians. Where
    it sends nothing while it runs, the typical checkpoint is described.

    \b
    Examples:
      joj explain runs/first-look --case ext4-truncate-fresh-fsync
      joj explain runs/own-app --case wal --json | jq '.calls[].cause'

    Exit code 4 if events were lost or bytes are unattributed.
    """
    from jojlab.analysis.commit.story import story
    from jojlab.analysis.run.summary import summarise
    from jojlab.foundation.cache import Cache
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.story import print_story
    from jojlab.report.terminal.summary import print_warnings
    from jojlab.report.words.story import without_requests
    from jojlab.trace.kept import Kept
    from jojlab.trace.run_folder import RunFolder

    folder = RunFolder.open(run)
    captured = [entry.case_id for entry in folder.cases if entry.captures]
    if not case and len(captured) != 1:
        raise UseError(
            f"{run} has {len(captured)} cases with captures",
            f"name one with --case: {', '.join(captured[:20])}",
        )
    name = case or captured[0]
    summary = summarise(folder, only=name, kept=Kept(Cache.default().analyses))
    found = summary.cases[0]
    if found.trace is None or not found.trace.runs:
        raise DataError(
            f"{name}: {without_requests(found.trace)}",
            "see what there is: joj show RUN --case CASE_ID --characterise",
        )
    if as_json:
        trace = found.trace
        document = {
            "case_id": found.case_id,
            "seed": trace.seed,
            "transaction_id": trace.transaction_id,
            "phase": trace.phase,
            "latency_ns": trace.latency_ns,
            "calls": [asdict(call) for call in story(trace)],
        }
        print(json_text(document))
    else:
        print_story(terminal(), found)
        print_warnings(terminal(), summary)
    raise typer.Exit(INCOMPLETE if summary.incomplete else FINE)
