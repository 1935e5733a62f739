"""Runs an experiment: its jobs in the lab, several at a time, into a run folder. A case that fails
is recorded with its reason and does not affect others. Finished jobs are in the cache, so an
interrupted run continues from there when it is started again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from jojlab.campaign.images import Images
from jojlab.campaign.inputs import named_here
from jojlab.campaign.jobs import AskedJob, jobs_of
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import by_wall_clock
from jojlab.experiment.plan import Plan
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError, MachineError, UseError
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.lab.outcome import Failed, Outcome
from jojlab.trace.run_folder import RunFolder, folder_name


@dataclass(frozen=True)
class Step:
    """What became of one case and seed; `failure` is empty when it is in the run folder.

    `is_there`: it was, before this run took it up.
    """

    case_id: str
    seed: int
    cached: bool = False
    is_there: bool = False
    failure: str = ""


class Watcher(Protocol):
    """Is notified of a run's progress."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """One case and seed is at a stage of jojlab.lab.lab.JobWatcher; called by any thread."""

    def again(self, step: Step) -> None:
        """One case and seed failed and is tried once more; by the thread that called execute."""

    def finished(self, step: Step) -> None:
        """One case and seed is done; called by the thread that called execute."""


class Unwatched:
    """A watcher that ignores everything."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Ignore it."""

    def again(self, step: Step) -> None:
        """Ignore it."""

    def finished(self, step: Step) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class Named:
    """Passes the progress of numbered jobs on, by the first case and seed of each."""

    asked: Sequence[AskedJob]
    watcher: Watcher

    def stage(self, number: int, stage: str) -> None:
        """See JobWatcher."""
        case, seed = self.asked[number].answers[0]
        self.watcher.stage(case.case_id, seed, stage)

    def again(self, number: int, why: str) -> None:
        """See JobWatcher."""
        case, seed = self.asked[number].answers[0]
        self.watcher.again(Step(case.case_id, seed, failure=why))


def options_for(planned: Plan, options: Options) -> Options:
    """Return the options that the cases allow.

    By the clock on the wall guests take turns: one beside another would slow it down. Raises
    UseError where they are to be measured on other machines than this one.
    """
    if not by_wall_clock(planned.experiment.cases):
        return options
    if options.cluster:
        what = "cases of emulated devices are measured on this machine alone"
        raise UseError(f"--cluster: {what}", "drop --cluster")
    return replace(options, jobs=1)


def execute(
    planned: Plan,
    images: Images,
    lab: Lab,
    out: Path,
    watcher: Watcher,
    *,
    power_cuts: bool = False,
) -> RunFolder:
    """Run every case of a planned experiment into the run folder `out`: a new one, or one of the
    very same run that was cut short, whose captures are kept; with `power_cuts` one that lacks only
    what they leave.

    Failed cases do not raise: they are marked in the run folder. Raises MachineError when the run
    folder cannot be written, and KeyboardInterrupt once the guests are gone.
    """
    experiment = planned.experiment
    fingerprint = images.fingerprint
    if by_wall_clock(experiment.cases):
        from jojlab.guest.wall_clock import host  # loads asyncio

        fingerprint["host"] = host()
    run = RunFolder.create(
        out,
        experiment=experiment.record(),
        seeds=experiment.seeds,
        cases=[(case.case_id, case.settings) for case in experiment.cases],
        fingerprint=fingerprint,
        experiment_toml=experiment.text,
        power_cuts=power_cuts,
    )
    for entry in run.cases:
        for capture in entry.captures:
            watcher.finished(Step(entry.case_id, capture.seed, is_there=True))
    jobs = jobs_of(planned, images, lab.cache)
    for each in jobs:
        for case, _ in each.answers:
            run.note_inputs(case.case_id, {own.name: own.identity for own in each.job.inputs})
    asked = [replace(each, answers=left) for each in jobs if (left := _left(run, each))]
    with run.many_changes(), lab.cache.work_dir() as work:
        for case in experiment.cases:
            if case.skip:
                run.mark(case.case_id, "skipped", case.skip)
        outcomes = lab.run([each.job for each in asked], Named(asked, watcher))
        with contextlib.closing(outcomes):
            for number, outcome in outcomes:
                for case, seed in asked[number].answers:
                    watcher.finished(_finish(run, case, seed, outcome, work, lab.cache))
    return run


def _left(run: RunFolder, asked: AskedJob) -> tuple[tuple[Case, int], ...]:
    """Return the answers that the run folder does not have yet."""
    return tuple(
        (case, seed)
        for case, seed in asked.answers
        if all(capture.seed != seed for capture in run.case(case.case_id).captures)
    )


def _finish(
    run: RunFolder, case: Case, seed: int, outcome: Outcome | Failed, work: Path, cache: Cache
) -> Step:
    """Take a finished case into the run folder, or mark why it failed.

    Raises MachineError when the run folder cannot be written.
    """
    if isinstance(outcome, Failed):
        return _failed(run, case, seed, named_here(outcome.why, case))
    folder = work / f"{folder_name(case.case_id)}-{seed}"
    try:
        outcome.write(folder)
    except MachineError as error:
        return _failed(run, case, seed, str(error))
    try:
        known = cache.analyses if outcome.from_cache else None
        run.add_capture(case.case_id, seed, folder, cached=outcome.from_cache, kept=known)
    except DataError as error:
        return _failed(run, case, seed, str(error))
    return Step(case.case_id, seed, cached=outcome.from_cache)


def _failed(run: RunFolder, case: Case, seed: int, why: str) -> Step:
    run.mark(case.case_id, "failed", f"seed {seed}: {why}")
    return Step(case.case_id, seed, failure=why)
