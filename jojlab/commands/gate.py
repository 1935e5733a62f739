"""joj gate: holds a run to budgets, and says which lines of the bill grew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jojlab.command_line.lab_options import (
    JOBS,
    ClusterOption,
    JobsOption,
    NoCacheOption,
    SetOption,
    TimeoutOption,
)
from jojlab.foundation.errors import (
    EXPECTATION_FAILED,
    FINE,
    INCOMPLETE,
    MachineError,
    UseError,
)
from jojlab.foundation.printable import json_text
from jojlab.lab.options import TIMEOUT_S, Options

if TYPE_CHECKING:
    from jojlab.gate.budgets import Budgets
    from jojlab.gate.check import LimitVerdict
    from jojlab.trace.run_folder import RunFolder


def gate(
    budgets: Annotated[Path, typer.Argument(metavar="BUDGETS", help="File of budgets (TOML).")],
    run: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="Run folder to check; default: a fresh run."),
    ] = None,
    settings: SetOption = None,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Keep this run's bill beside BUDGETS as the accepted one."),
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit's XML.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a summary in Markdown.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of a fresh run; default: runs/NAME.")
    ] = None,
    jobs: JobsOption = JOBS,
    no_cache: NoCacheOption = False,
    timeout: TimeoutOption = TIMEOUT_S,
    cluster: ClusterOption = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Compare a run with budgets, and list what grew.

    Without RUN it runs the experiment that BUDGETS names; what is in the cache is not run again.
    The same case gives the same numbers on every machine, so a budget has no tolerance.

    \b
    Examples:
      joj gate budgets.toml
      joj gate budgets.toml --accept              # from now on, compare with this bill
      joj gate budgets.toml runs/own-app
      joj gate budgets.toml --junit gate.xml --markdown "$GITHUB_STEP_SUMMARY"
      joj gate budgets.toml --set scripts=my-app --json

    docs/gate.md has the form of BUDGETS, and a workflow for CI.

    Exit code 1 if a limit is broken; 4 if none is, but one could not be measured.
    """
    from jojlab.analysis.run.summary import summarise
    from jojlab.foundation.cache import Cache
    from jojlab.gate.accepted import accept as accepted_of
    from jojlab.gate.accepted import read_accepted, write_accepted
    from jojlab.gate.budgets import read_budgets
    from jojlab.gate.check import Held, check
    from jojlab.report.gate.junit import junit as junit_of
    from jojlab.report.gate.markdown import markdown as markdown_of
    from jojlab.report.terminal.console import terminal
    from jojlab.report.terminal.gate import print_gate
    from jojlab.trace.kept import Kept
    from jojlab.trace.run_folder import RunFolder

    asked = read_budgets(budgets)
    if run is not None and (settings or out):
        raise UseError("--set and --out are of a fresh run", "leave out RUN")
    accepted = read_accepted(asked.accepted_path)
    options = Options(jobs=jobs, use_cache=not no_cache, timeout_s=timeout, cluster=cluster)
    folder = RunFolder.open(run) if run else _fresh(asked, settings or [], out, options)
    summary = summarise(folder, kept=Kept(Cache.default().analyses))
    verdicts = check(summary, asked.budgets, accepted)
    if as_json:
        print(json_text(_json(verdicts)))
    else:
        print_gate(terminal(), verdicts)
    name = str(budgets)
    if junit:
        _write(junit, junit_of(verdicts, name), "w")
    if markdown:
        _write(markdown, markdown_of(verdicts, name), "a")
    if accept:
        write_accepted(asked.accepted_path, accepted_of(summary))
        typer.echo(f"accepted bill: {asked.accepted_path}", err=True)
    found = {verdict.kept for verdict in verdicts}
    if Held.BROKEN in found:
        raise typer.Exit(EXPECTATION_FAILED)
    raise typer.Exit(INCOMPLETE if Held.NOT_MEASURED in found else FINE)


def _fresh(budgets: Budgets, settings: list[str], out: Path | None, options: Options) -> RunFolder:
    """Run the experiment of the budgets, and cut the power of the cases with a guarantee."""
    from jojlab.campaign.execute import execute, options_for
    from jojlab.command_line.images import told_images
    from jojlab.command_line.interrupted import interrupted
    from jojlab.command_line.out_folder import free_folder
    from jojlab.experiment.plan import Plan, plan
    from jojlab.experiment.read import find, read
    from jojlab.foundation.cache import Cache
    from jojlab.gate.budgets import refuse_idle_budgets
    from jojlab.gate.check import guarded
    from jojlab.lab.lab import Lab
    from jojlab.report.terminal.progress import shown
    from jojlab.verify.durability import cut_run, steps_left

    if not budgets.experiment:
        raise UseError(
            f"{budgets.path}: experiment is missing", 'write experiment = "...", or name a RUN'
        )
    experiment = read(find(budgets.experiment), [*budgets.settings, *settings])
    refuse_idle_budgets(budgets.budgets, [case.settings for case in experiment.cases])
    planned, cache = plan(experiment), Cache.default()
    asked = planned.experiment
    lab, images = Lab(cache, options_for(planned, options)), told_images(planned, cache)
    cut = tuple(case for case in asked.cases if guarded(budgets.budgets, case.settings))
    folder = out or free_folder(Path("runs") / asked.name)
    try:
        steps = sum(not case.skip for case in asked.cases) * len(asked.seeds)
        with shown(asked.question, steps) as watcher:
            made = execute(planned, images, lab, folder, watcher, power_cuts=bool(cut))
        if cut:
            some = Plan(replace(asked, cases=cut), planned.profiles)
            title = f"{budgets.states:,} states after power cuts of each case"
            with shown(title, steps_left(made, some), "verdict") as watcher:
                for step in cut_run(made, some, images, lab, budgets.states, watcher):
                    watcher.finished(step)
    except KeyboardInterrupt as error:
        raise interrupted(error, folder, out, lab, planned) from None
    return made


def _json(verdicts: tuple[LimitVerdict, ...]) -> list[dict[str, Any]]:
    from jojlab.report.words import gate as words

    return [
        {
            "case_id": each.case_id,
            "limit": each.limit.text,
            "kept": each.kept.value,
            "value": each.value,
            "accepted": each.before,
            "survives": dict(each.survival.outcomes) if each.survival else None,
            "reason": each.why,
            "changed": {name: {"old": old, "new": new} for name, old, new in each.changed},
            "lines": [words.line(line) for line in each.lines],
        }
        for each in verdicts
    ]


def _write(path: Path, content: str, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as stream:
            stream.write(content)
    except OSError as error:
        raise MachineError(
            f"{path}: cannot be written: {error.strerror}", "name another file"
        ) from error
