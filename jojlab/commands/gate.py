"""joj gate: holds a run to budgets, and says which lines of the bill grew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jojlab.analysis.run.summary import summarise
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import (
    begin_campaign,
    cut_power_with_progress,
    explained_interruption,
    run_with_progress,
)
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, UseError, writable
from jojlab.foundation.printable import json_text
from jojlab.gate.budgets import (
    Budgets,
    read_accepted,
    read_budgets,
    refuse_idle_budgets,
    write_accepted,
)
from jojlab.gate.budgets import accept as accepted_of
from jojlab.gate.check import LimitOutcome, LimitVerdict, check, needs_power_cuts
from jojlab.gate.trend import append_point, trend_point
from jojlab.lab.job import Options
from jojlab.report import gate as words
from jojlab.report.gate import junit as junit_of
from jojlab.report.gate import markdown as markdown_of
from jojlab.report.gate import print_gate
from jojlab.report.shared.console import READABLE, terminal
from jojlab.trace.run_folder import RunFolder


@command()
@argument("budgets", metavar="BUDGETS", type=PATH, help="File of budgets (TOML).")
@argument(
    "run",
    metavar="[RUN]",
    type=PATH,
    required=False,
    help="Run folder to check; default: a fresh run.",
)
@common.settings
@flag("--accept", "Keep this run's bill beside BUDGETS as the accepted one.")
@option("--junit", "FILE", "Write JUnit's XML.", PATH)
@option("--markdown", "FILE", "Append a summary in Markdown.", PATH)
@option("--trend", "FILE", "Append a line to a trend, and draw it.", PATH)
@option("--out", "DIR", "Folder of a fresh run; default: runs/NAME.", PATH)
@common.jobs
@common.no_cache
@common.timeout
@common.cluster
@common.json("Print the verdicts as JSON.")
@common.lab_options
def gate(
    budgets: Path,
    run: Path | None,
    settings: tuple[str, ...],
    accept: bool,
    junit: Path | None,
    markdown: Path | None,
    trend: Path | None,
    out: Path | None,
    options: Options,
    as_json: bool,
) -> int:
    """Compare a run with budgets, and list what grew.

    Without RUN it runs the experiment that BUDGETS names; what is in the cache is not run again.
    The same case gives the same numbers on every machine, so a budget has no tolerance.

    \b
    Examples:
      joj gate budgets.toml
      joj gate budgets.toml --accept              # from now on, compare with this bill
      joj gate budgets.toml runs/own-app
      joj gate budgets.toml --junit gate.xml --markdown "$GITHUB_STEP_SUMMARY"
      joj gate budgets.toml --trend gate-trend.jsonl      # how each limit went, commit by commit
      joj gate budgets.toml --set scripts=my-app --json

    docs/gate.md has the form of BUDGETS, and a workflow for CI.

    Exit code 1 if a limit is broken; 4 if none is, but one could not be measured.
    """
    file = read_budgets(budgets)
    if run is not None and (settings or out):
        raise UseError("--set and --out are of a fresh run", "leave out RUN")
    accepted = read_accepted(file.accepted_path)
    folder = RunFolder.open(run) if run else _fresh(file, settings, out, options)
    summary = summarise(folder, cache=Cache.default())
    verdicts = check(summary, file.budgets, accepted)
    points = append_point(trend, trend_point(verdicts, budgets.parent)) if trend else ()
    lines = words.trend_lines(points, verdicts) if trend else ()
    if as_json:
        print(json_text(_json(verdicts)))
    else:
        print_gate(terminal(READABLE), verdicts)
        if trend:
            words.print_trend(terminal(READABLE), lines)
    name = str(budgets)
    if junit:
        _write(junit, junit_of(verdicts, name), "w")
    if markdown:
        drawn = words.trend_markdown(lines) if trend else ""
        _write(markdown, markdown_of(verdicts, name) + drawn, "a")
    if accept:
        write_accepted(file.accepted_path, accepted_of(summary))
        click.echo(f"accepted bill: {file.accepted_path}", err=True)
    found = {verdict.outcome for verdict in verdicts}
    if LimitOutcome.BROKEN in found:
        return EXPECTATION_FAILED
    return INCOMPLETE if LimitOutcome.NOT_MEASURED in found else FINE


def _fresh(
    budgets: Budgets, settings: tuple[str, ...], out: Path | None, options: Options
) -> RunFolder:
    """Run the experiment of the budgets, and cut the power of the cases with a guarantee."""
    if not budgets.experiment:
        raise UseError(
            f"{budgets.path}: experiment is missing", 'write experiment = "...", or name a RUN'
        )
    experiment = read(find(budgets.experiment), [*budgets.settings, *settings])
    refuse_idle_budgets(budgets.budgets, [case.settings for case in experiment.cases])
    campaign = begin_campaign(plan(experiment), options)
    cut = [case for case in campaign.cases if needs_power_cuts(budgets.budgets, case.settings)]
    folder = out or common.free_folder(Path("runs") / experiment.name)
    with explained_interruption(campaign, folder, out):
        run = run_with_progress(campaign, folder, power_cuts=bool(cut))
        if cut:
            cut_power_with_progress(campaign, run, budgets.states, cut)
    return run


def _json(verdicts: tuple[LimitVerdict, ...]) -> list[dict[str, Any]]:
    return [
        {
            "case_id": each.case_id,
            "limit": each.limit.text,
            "kept": each.outcome.value,
            "value": each.value,
            "accepted": each.before,
            "durability": dict(each.durability.outcomes) if each.durability else None,
            "reason": each.why,
            "changed": {name: {"old": old, "new": new} for name, old, new in each.changed},
            "lines": [words.grown_line_words(line) for line in each.lines],
        }
        for each in verdicts
    ]


def _write(path: Path, content: str, mode: str) -> None:
    with writable(path, "name another file"), path.open(mode, encoding="utf-8") as stream:
        stream.write(content)
