"""joj explain: the typical commit of a case as a story in sentences."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from jojlab.analysis.commit.story import story
from jojlab.analysis.run.summary import summarise
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, INCOMPLETE, DataError, UseError
from jojlab.foundation.printable import json_text
from jojlab.report.terminal.console import terminal
from jojlab.report.terminal.story import print_story
from jojlab.report.terminal.summary import print_warnings
from jojlab.report.words.story import without_requests
from jojlab.trace.kept import Kept
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run", type=PATH, help="Run folder.")
@option("--case", metavar="CASE_ID", default="", help="Which case; needed where there are several.")
@json_option()
def explain(run: Path, case: str, as_json: bool) -> int:
    """Describe the typical commit of a case in sentences, write by write.

    It is the commit whose requests and bytes, and then latency, are nearest to the medians. Where
    it sends nothing while it runs, the typical checkpoint is described.

    \b
    Examples:
      joj explain runs/first-look --case ext4-truncate-fresh-fsync
      joj explain runs/own-app --case wal --json | jq '.calls[].cause'

    Exit code 4 if events were lost or bytes are unattributed.
    """
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
    return INCOMPLETE if summary.incomplete else FINE
