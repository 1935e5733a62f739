"""joj run and joj report: an experiment is run, its figures shown, its report written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.memory_model import core_named, refuse_unmodelled
from jojlab.campaign.power_cuts import steps_left
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import (
    begin_campaign,
    explained_interruption,
    judge_with_progress,
    run_with_progress,
    show_memory_model,
)
from jojlab.command_line.group import PATH, argument, command, option
from jojlab.command_line.own_program import choose_experiment, own_program_options
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, MACHINE_CANNOT, UseError
from jojlab.foundation.printable import json_text
from jojlab.foundation.signals import SignalReceived
from jojlab.lab.job import TIMEOUT_S, Options
from jojlab.live.agent import LivePlace
from jojlab.live.raw_nand import load_ubifs, refuse_nand
from jojlab.live.runner import needs_own_build, refuse_cases, run_experiment
from jojlab.report.answer import answer_json
from jojlab.report.page import write_report
from jojlab.report.progress import run_progress
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.summary import print_summary
from jojlab.trace.capture import Capture
from jojlab.trace.run_folder import RunFolder


@command()
@common.experiment
@common.settings
@own_program_options
@common.jobs
@common.no_cache
@option("--out", "DIR", "Run folder; default: runs/NAME.", PATH)
@common.timeout
@common.cluster
@common.durability
@common.native
@common.states
@common.memory_model
@common.clock
@common.nand
@common.destroy
@common.figures
@common.json("Print the figures as JSON.")
@common.lab_options
def run(
    experiment: str,
    settings: tuple[str, ...],
    options: Options,
    out: Path | None,
    durability: bool,
    states: int,
    memory_model: str,
    clock: str,
    nand: Path | None,
    destroy_data: bool,
    figures: bool,
    as_json: bool,
    **own_program: Any,
) -> int:
    """Run an experiment in guests; show its figures, write its report.

    Finished cases are cached by content. Running again computes only what changed, and continues
    an interrupted run.

    \b
    Examples:
      joj run experiments/first-look
      joj run journal-modes --set filesystem=ext4 --set transactions=37
      joj run first-look --set sync_call=fsync,fdatasync --out /tmp/sync-calls
      joj run first-look --no-cache --jobs 1
      joj run first-look --durability --states 200   # also cut the power of every case
      joj run first-look --memory-model cortex-a9    # docs/memory-model.md
      joj run atc13 --cluster tcp://10.0.0.2:8786   # docs/cluster.md
      joj run ubifs-allocation --clock wall --nand /dev/mtd3 --destroy-data   # docs/raw-nand.md
      joj run --program sqlite3 --argument app.db --argument 'CREATE TABLE t(x)'
      joj run --program ./app --argument data.db --files ./data --set filesystem=ext4,f2fs
      joj run --program ./engine --check ./check --durability   # docs/own-engine.md

    Results of earlier power cuts are shown too, if they are in the cache.

    Exit code 3 if a case failed, 4 if events were lost or bytes are unattributed; with --durability
    1 if a power cut did harm that the manuals rule out.
    """
    choice = choose_experiment("joj run", experiment, settings, **own_program)
    refused = {
        "--program": bool(own_program["program"]),
        "--cluster": bool(options.cluster),
        "--durability": durability,
        "--timeout": options.timeout_s != TIMEOUT_S,
        "--memory-model": bool(memory_model),
    }
    if is_by_wall_clock(clock, has_own_option=bool(nand) or destroy_data, refused=refused):
        folder = out or common.free_folder(Path("runs") / choice.name)
        run_by_wall_clock(choice, nand, folder, destroy=destroy_data)
        return show_run(folder, figures=figures, as_json=as_json)
    if memory_model:
        core_named(memory_model)  # refused before anything runs
        refuse_unmodelled(choice.cases)
    if options.native and not durability:
        raise UseError("--native judges what power cuts leave", "add --durability")
    campaign = begin_campaign(plan(choice), options)
    folder = out or common.free_folder(Path("runs") / choice.name)
    if not options.cluster and (words := campaign.estimate()):
        click.echo(words, err=True)
    with explained_interruption(campaign, folder, out):
        run = run_with_progress(campaign, folder, power_cuts=durability)
        judge_with_progress(campaign, run, states, cut=durability)
    code = show_run(
        folder, figures=figures, as_json=as_json, checked=run.checked, refutable=durability
    )
    if memory_model and code in (FINE, INCOMPLETE):
        show_memory_model(memory_model, campaign, folder, silent=as_json)
    if durability and code == FINE and steps_left(run, campaign.cases):
        code = MACHINE_CANNOT
    return code


def show_run(
    folder: Path,
    *,
    figures: bool,
    as_json: bool,
    checked: Mapping[str, Capture] | None = None,
    refutable: bool = False,
) -> int:
    """Print the figures of a run, write its report, and return the exit code it deserves.

    `checked` are captures of it that need no further check; with `refutable` harm by a power cut
    that the manuals rule out is a failure.
    """
    run = RunFolder.open(folder)
    run.checked.update(checked or {})
    summary = summarise(run, with_traffic=True, cache=Cache.default())
    report = folder / "report.html"
    write_report(report, summary, str(folder))
    if as_json:
        print(json_text(answer_json(summary)))
    else:
        print_summary(terminal(READABLE), summary, figures=figures)
        print(f"\nrun     {folder}\nreport  {report}")
    if any(case.status == "failed" for case in run.cases):
        return MACHINE_CANNOT
    if summary.incomplete_cases:
        return INCOMPLETE
    return EXPECTATION_FAILED if refutable and summary.is_refuted else FINE


@command()
@argument("run", type=PATH, help="Run folder.")
@option("-o, --out", "FILE", "File to write; default: RUN/report.html.", PATH)
def report(run: Path, out: Path | None) -> int:
    """Write the report of a run: one HTML file that needs no network.

    \b
    Examples:
      joj report runs/first-look
      joj report runs/first-look -o /srv/www/first-look.html

    Exit code 4 if events were lost, bytes are unattributed, or a case failed.
    """
    cache = Cache.default()
    summary = summarise(RunFolder.open(run), with_traffic=True, cache=cache)
    path = out or run / "report.html"
    write_report(path, summary, str(run))
    print(path)
    return INCOMPLETE if summary.incomplete_cases or summary.unfinished_cases else FINE


def is_by_wall_clock(clock: str, *, has_own_option: bool, refused: dict[str, bool]) -> bool:
    """Return whether cases run on this machine.

    `has_own_option`: an option was given that only such a run has. `refused`: options that it does
    not have, and whether they were given. Raises UseError for an unknown clock, and for these.
    """
    if clock not in common.CLOCKS:
        raise UseError(f"--clock {clock}", f"one of: {', '.join(common.CLOCKS)}")
    if clock == common.CLOCKS[0]:
        if has_own_option:
            raise UseError("--nand and --destroy-data: the clock is virtual", "add --clock wall")
        return False
    if wrong := [name for name, is_there in refused.items() if is_there]:
        raise UseError(f"--clock wall: not with {' and '.join(wrong)}", "drop one of them")
    return True


def run_by_wall_clock(
    experiment: Experiment, node: Path | None, out: Path, *, destroy: bool
) -> None:
    """Run an experiment on raw NAND of this machine, into the run folder `out`.

    Raises UseError and MachineError where that cannot be, before anything is changed.
    """
    refuse_cases(experiment)
    refuse_nand(node, may_destroy=destroy)
    assert node
    load_ubifs(Cache.default(), chosen_buffers=needs_own_build(experiment))
    steps = sum(not case.skip for case in experiment.cases) * len(experiment.seeds)
    try:
        with run_progress(experiment.question, steps) as watcher:
            run_experiment(experiment, LivePlace(node, is_nand=True), out, watcher)
    except SignalReceived as error:
        raise SignalReceived(error, f"kept so far: joj show {out}") from None
