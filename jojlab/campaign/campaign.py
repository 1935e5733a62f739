"""A campaign carries an experiment out: its jobs run in the lab, several at a time, into a run
folder, and the power of its cases is cut. A case that fails is recorded with its reason and does
not affect others. Finished jobs are in the cache, so an interrupted campaign goes on from there
when it is started again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from jojlab.campaign import power_cuts
from jojlab.campaign.images import Images
from jojlab.campaign.jobs import JobRequest, NumberedJobs, RunProgress, Step, jobs_of, named_here
from jojlab.campaign.power_cuts import Answer, PowerCutRequest
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan, runs_by_wall_clock
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError, MachineError, UseError
from jojlab.guest.run import host
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.lab.outcome import FailedJob, Outcome
from jojlab.trace.run_folder import RunFolder, folder_name

# Of 200 transactions, on one core each of a quiet machine of 2 (joj bill --no-cache); an experiment
# with longer cases takes longer.
USUAL_CASE_S = 2.0
# Of first-look, processor time; docs/power-cuts.md has the command.
_STATE_S = 0.1
# Where User Mode Linux judges them, without the run: bench/README.md, "States after power cuts".
_NATIVE_STATE_S = 0.009
# A run that takes less is not announced.
SHORT_S = 120.0


@dataclass(frozen=True)
class Campaign:
    """A planned experiment, the images of its cases, and the lab that runs its jobs."""

    planned: Plan
    images: Images
    lab: Lab
    # The builds of User Mode Linux that judge what power cuts leave, by kernel; none: the guest.
    native: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def jobs(self) -> tuple[JobRequest, ...]:
        """The jobs of all cases and seeds."""
        return tuple(jobs_of(self.planned, self.images, self.lab.cache))

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the experiment, those that are skipped included."""
        return tuple(self.planned.experiment.cases)

    @property
    def steps(self) -> int:
        """The number of captures: one for each case that is not skipped, and seed."""
        return sum(not case.skip for case in self.cases) * len(self.planned.experiment.seeds)

    def estimate(self) -> str:
        """Return how long the guests take that are not cached; empty below two minutes."""
        count = sum(not self.lab.is_cached(each.job) for each in self.jobs)
        seconds = count * USUAL_CASE_S / self.lab.options.jobs
        if seconds < SHORT_S:
            return ""
        return (
            f"{count:,} guests to run, {self.lab.options.jobs} at a time: some "
            f"{format_duration(seconds)}, by {USUAL_CASE_S:g} s for a usual case; Ctrl-C keeps "
            "what is finished"
        )

    def run(self, out: Path, watcher: RunProgress, *, power_cuts: bool = False) -> RunFolder:
        """Run every case into the run folder `out`: a new one, or one of the very same run that was
        cut short, whose captures are kept; with `power_cuts` one that lacks only what they leave.

        Failed cases do not raise: they are marked in the run folder. Raises MachineError when the
        run folder cannot be written, and KeyboardInterrupt once the guests are gone.
        """
        experiment = self.planned.experiment
        fingerprint = self.images.fingerprint
        if runs_by_wall_clock(experiment.cases):
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
        for each in self.jobs:
            inputs = {own.name: own.identity for own in each.job.inputs}
            for case, _ in each.answers:
                run.note_inputs(case.case_id, inputs)
        for entry in run.cases:
            for capture in entry.captures:
                watcher.note_finished(Step(entry.case_id, capture.seed, is_there=True))
        requests = [
            replace(each, answers=left)
            for each in self.jobs
            if (left := _missing_answers(run, each))
        ]
        cache = self.lab.cache
        with run.many_changes(), cache.work_dir() as work:
            for case in experiment.cases:
                if case.skip:
                    run.mark(case.case_id, "skipped", case.skip)
            outcomes = self.lab.run(
                [each.job for each in requests], NumberedJobs(requests, watcher)
            )
            with contextlib.closing(outcomes):
                for number, outcome in outcomes:
                    for case, seed in requests[number].answers:
                        watcher.note_finished(_finish(run, case, seed, outcome, work, cache))
        return run

    def power_cut_answers(
        self, states: int, watcher: RunProgress
    ) -> Iterator[tuple[Step, Answer | None]]:
        """Cut the power of every case that is not skipped and can be cut, and every seed.

        `states` distinct states of each case are judged, shared out over its seeds. Yields the
        answer of each seed as soon as its share is judged; a case that fails has no answer, and its
        step says why. jojlab.analysis.run.durability makes a verdict of the answers.
        """
        return power_cuts.run_requests(self.power_cut_requests(states), self.lab, watcher)

    def cut_power(
        self,
        run: RunFolder,
        states: int,
        watcher: RunProgress,
        cases: Collection[Case] | None = None,
    ) -> Iterator[Step]:
        """Cut the power of every capture of a run that has no answer yet, of all cases or of those
        given; put the answers into the run.

        A case whose power cannot be cut, or where that fails, is marked so.
        """
        for case in self.cases if cases is None else cases:
            if run.case(case.case_id).captures and (reason := power_cuts.exclusion_reason(case)):
                run.mark_uncut(case.case_id, reason)
        left = [
            each
            for request in self.power_cut_requests(states, cases)
            if (each := power_cuts.unanswered_request(run, request)).answers
        ]
        with run.many_changes():
            for step, answer in power_cuts.run_requests(left, self.lab, watcher):
                yield power_cuts.put_answer(run, step, answer)

    def take_known_power_cuts(self, run: RunFolder, states: int) -> None:
        """Put those answers into a run folder that the cache has whole."""
        known = [
            each
            for request in self.power_cut_requests(states)
            if all(self.lab.is_cached(job) for job in request.jobs)
            and (each := power_cuts.unanswered_request(run, request)).answers
        ]
        for step, answer in power_cuts.run_requests(known, self.lab, RunProgress()):
            power_cuts.put_answer(run, step, answer)

    def estimate_power_cuts(self, states: int) -> str:
        """Return a sentence on how many states are to be judged, as the cache has not got them, and
        how long that takes; empty below two minutes.
        """
        left = [
            (each, sum(not self.lab.is_cached(job) for job in each.jobs))
            for each in self.power_cut_requests(states)
        ]
        guests = sum(count for _, count in left)
        wanted = sum(each.states * count // len(each.jobs) for each, count in left)
        jobs = self.lab.options.jobs
        state_s = usual_state_s(native=bool(self.native))
        seconds = (guests * USUAL_CASE_S + wanted * state_s) / jobs
        if seconds < SHORT_S:
            return ""
        return (
            f"{wanted:,} states to judge by {guests} guests, {jobs} at a time: some "
            f"{format_duration(seconds)}, by {state_s:g} s a state; Ctrl-C keeps what guests have "
            "finished"
        )

    def judged_guests(self, states: int) -> tuple[int, int]:
        """Return of how many guests the cache has what they judged, and how many judge all."""
        jobs = [job for each in self.power_cut_requests(states) for job in each.jobs]
        return sum(self.lab.cache.has(job.key) for job in jobs), len(jobs)

    def power_cut_requests(
        self, states: int, cases: Collection[Case] | None = None
    ) -> list[PowerCutRequest]:
        """Return what judges so many states of every case that can be cut, or of those given."""
        chosen = {case.case_id for case in (self.cases if cases is None else cases)}
        seeds = len(self.planned.experiment.seeds)
        return power_cuts.requests(self.jobs, states, seeds, chosen, self.native)


def usual_state_s(*, native: bool) -> float:
    """Return the seconds of processor time that judging a state usually takes."""
    return _NATIVE_STATE_S if native else _STATE_S


def format_duration(seconds: float) -> str:
    """Return a time as "40 s", "12 min" or "3 h"."""
    if seconds < 60:
        return f"{max(1, seconds):,.0f} s"
    amount, unit = (seconds / 3600, "h") if seconds >= 5400 else (seconds / 60, "min")
    return f"{amount:,.0f} {unit}"


def options_for(planned: Plan, options: Options) -> Options:
    """Return the options that the cases allow.

    By the clock on the wall guests take turns: one beside another would slow it down. Raises
    UseError where they are to be measured on other machines than this one.
    """
    if not runs_by_wall_clock(planned.experiment.cases):
        return options
    if options.cluster:
        what = "cases of emulated devices are measured on this machine alone"
        raise UseError(f"--cluster: {what}", "drop --cluster")
    return replace(options, jobs=1)


def _missing_answers(run: RunFolder, request: JobRequest) -> tuple[tuple[Case, int], ...]:
    """Return the answers that the run folder does not have yet."""
    return tuple(
        (case, seed)
        for case, seed in request.answers
        if all(capture.seed != seed for capture in run.case(case.case_id).captures)
    )


def _finish(
    run: RunFolder, case: Case, seed: int, outcome: Outcome | FailedJob, work: Path, cache: Cache
) -> Step:
    """Take a finished case into the run folder, or mark why it failed.

    Raises MachineError when the run folder cannot be written.
    """
    if isinstance(outcome, FailedJob):
        return _note_failure(run, case, seed, named_here(outcome.why, case))
    folder = work / f"{folder_name(case.case_id)}-{seed}"
    try:
        outcome.write(folder)
    except MachineError as error:
        return _note_failure(run, case, seed, str(error))
    try:
        known = cache if outcome.from_cache else None
        run.add_capture(case.case_id, seed, folder, cached=outcome.from_cache, cache=known)
    except DataError as error:
        return _note_failure(run, case, seed, str(error))
    return Step(case.case_id, seed, cached=outcome.from_cache)


def _note_failure(run: RunFolder, case: Case, seed: int, why: str) -> Step:
    run.mark(case.case_id, "failed", f"seed {seed}: {why}")
    return Step(case.case_id, seed, failure=why)
