"""The common part of subcommands that run a campaign: they begin it, run it and cut its power while
progress is shown on stderr, and say what a signal left of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import click
import msgspec

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.campaign import Campaign, options_for
from jojlab.campaign.images import Images, images_of
from jojlab.campaign.memory_model import core_named, model_run
from jojlab.campaign.power_cuts import native_refusal, steps_left
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan, runs_by_wall_clock
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, UseError
from jojlab.foundation.printable import json_text
from jojlab.foundation.signals import SignalReceived
from jojlab.guest import user_mode
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.live.runner import Bench, run_bench
from jojlab.report.memory_model import print_memory_models
from jojlab.report.page import write_report
from jojlab.report.progress import bench_progress, run_progress
from jojlab.report.shared.console import READABLE, terminal
from jojlab.trace.run_folder import RunFolder


def begin_campaign(planned: Plan, options: Options) -> Campaign:
    """Return the campaign of a plan, its images made if need be.

    Raises what options_for and jojlab.campaign.images.images_of raise.
    """
    cache = Cache.default()
    lab = Lab(cache, options_for(planned, options))
    native = native_builds(planned, cache, options)
    return Campaign(planned, announced_images(planned, cache), lab, native)


def native_builds(planned: Plan, cache: Cache, options: Options) -> dict[str, str]:
    """Return the builds of User Mode Linux that judge, of the cases' kernels, by their names, built
    if need be; say so on stderr, as that takes a while. Without --native there are none.

    Raises UseError where a case cannot be judged by one, MachineError where none can be built.
    """
    if not options.native:
        return {}
    if options.cluster:
        raise UseError("--native judges on this machine alone", "drop it, or drop --cluster")
    cases = [case for case in planned.experiment.cases if not case.skip]
    for case in cases:
        if reason := native_refusal(case):
            raise UseError(f"--native: {case.case_id}: {reason}", "leave --native out")
    keys = {}
    for name in {str(case.settings["kernel"]) for case in cases}:
        keys[name] = user_mode.build_key(cache, name)
        if not user_mode.is_built(cache, keys[name]):
            what = "some 9 minutes of a processor, and 139 MB of source to download"
            click.echo(f"building User Mode Linux of kernel {name}, once: {what}", err=True)
            user_mode.build(cache, name, keys[name])
    return keys


def announced_images(planned: Plan, cache: Cache) -> Images:
    """Return the images that the cases need; say on stderr which has to be made, as that takes a
    while.

    Raises what jojlab.campaign.images.images_of raises.
    """

    def announce(name: str) -> None:
        click.echo(
            f"making the image of the guests, once (it may download packages): {name}", err=True
        )

    return images_of(planned, cache, announce)


def run_with_progress(
    campaign: Campaign, folder: Path, title: str = "", *, power_cuts: bool = False
) -> RunFolder:
    """Run a campaign into a run folder under a title, its question by default."""
    with run_progress(title or campaign.planned.experiment.question, campaign.steps) as watcher:
        return campaign.run(folder, watcher, power_cuts=power_cuts)


def cut_power_with_progress(
    campaign: Campaign, run: RunFolder, states: int, cases: Collection[Case] | None = None
) -> None:
    """Cut the power of all cases of a run, or of those given."""
    title = f"{states:,} states after power cuts"
    if len(campaign.cases) > 1:
        title += " of each case"
    steps = steps_left(run, campaign.cases if cases is None else cases)
    with run_progress(title, steps, "verdict") as watcher:
        for step in campaign.cut_power(run, states, watcher, cases):
            watcher.note_finished(step)


def judge_with_progress(campaign: Campaign, run: RunFolder, states: int, *, cut: bool) -> None:
    """Cut the power of all cases of a run, and say before how long that takes; without `cut` take
    what the cache knows of power cuts.
    """
    if not cut:
        campaign.take_known_power_cuts(run, states)
        return
    if not campaign.lab.options.cluster and (words := campaign.estimate_power_cuts(states)):
        click.echo(words, err=True)
    cut_power_with_progress(campaign, run, states)


@contextlib.contextmanager
def explained_interruption(campaign: Campaign, folder: Path, out: Path | None) -> Iterator[None]:
    """Turn a signal into the error of `interruption`."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise interruption(error, folder, out, campaign) from None


def interruption(
    error: KeyboardInterrupt, folder: Path, out: Path | None, campaign: Campaign
) -> SignalReceived:
    """Return the error that says what is kept of the run in `folder`, and how it goes on.

    `out` is the folder that the user named. Without one, the next run has another folder, and what
    is finished has to come from the cache.
    """
    try:
        is_any_finished = any(case.captures for case in RunFolder.open(folder).cases)
    except JojError:
        is_any_finished = False
    if not is_any_finished:
        return SignalReceived(error, "nothing was finished yet")
    is_cached = campaign.lab.options.use_cache and not runs_by_wall_clock(campaign.cases)
    way = "" if out or is_cached else f" with --out {folder}"
    return SignalReceived(
        error,
        f"what was finished is kept: joj show {folder}",
        f"the same command{way} goes on from there",
    )


def show_memory_model(name: str, campaign: Campaign, folder: Path, *, silent: bool = False) -> None:
    """Run the model on every case, keep what it counted in the run folder, and print it.

    The report is written again, as it has a section on it. With `silent` nothing is printed but on
    stderr. Raises UseError for an unknown core, and what a job fails by.
    """
    core = core_named(name)
    try:
        model = model_run(
            campaign.jobs, campaign.lab, core, lambda line: click.echo(line, err=True)
        )
    except KeyboardInterrupt as error:
        raise SignalReceived(
            error, f"the run is whole, without the memory model: joj show {folder}"
        ) from None
    path = folder / f"memory-model-{core.name}.json"
    path.write_text(json_text(msgspec.to_builtins(model)))
    click.echo(f"memory model  {path}", err=True)
    summary = summarise(RunFolder.open(folder), with_traffic=True, cache=campaign.lab.cache)
    write_report(folder / "report.html", summary, str(folder))
    if not silent:
        print_memory_models(terminal(READABLE), summary)


def bench_with_progress(bench: Bench, folder: Path) -> RunFolder:
    """Run a bench into a new run folder, telling on stderr how it goes on."""
    workload = bench.settings["workload"]
    with bench_progress(f"{workload} in {bench.directory}", len(bench.seeds)) as progress:
        return run_bench(bench, folder, progress)
