"""What power cuts leave of the cases of an experiment: asked of guests, or taken from the cache.

Reads the cases of an experiment; cuts the power of each in guests (agent/src/lab/power_cut);
produces an answer for every case and seed, and puts them into a run folder.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jojlab.analysis.run.risks import hazards, unknowns
from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.survival import survival
from jojlab.campaign.estimate import SHORT_S, USUAL_CASE_S, span
from jojlab.campaign.execute import Named, Step, Unwatched, Watcher
from jojlab.campaign.images import Images
from jojlab.campaign.inputs import named_here
from jojlab.campaign.jobs import AskedJob, jobs_of
from jojlab.device.emulated import EMULATED
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan
from jojlab.foundation.document import conform
from jojlab.foundation.errors import DataError, JojError
from jojlab.lab.job import Job, Kind
from jojlab.lab.lab import Lab
from jojlab.lab.outcome import Failed, Outcome
from jojlab.lab.power_cuts import merged, power_cuts
from jojlab.model.hazards import Observation
from jojlab.model.workloads import workload_of
from jojlab.recording.sql_text import script_facts
from jojlab.trace.power_cuts import PowerCuts
from jojlab.trace.run_folder import RunFolder

Answer = Mapping[str, Any]


# Of first-look, processor time; docs/power-cuts.md has the command.
USUAL_STATE_S = 0.1


@dataclass(frozen=True)
class _Parts:
    """The jobs that together judge so many states, and the cases and seeds that these are of."""

    states: int
    jobs: tuple[Job, ...]
    answers: tuple[tuple[Case, int], ...]


def unfit(case: Case) -> str:
    """Return why the power of a case cannot be cut; empty where it can."""
    settings = case.settings
    if reason := workload_of(settings).uncuttable(settings):
        return reason
    if str(settings["device"]) in EMULATED:
        return f"device {settings['device']}: only a modelled device records what is written"
    return ""


def cut(
    planned: Plan, images: Images, lab: Lab, states: int, watcher: Watcher
) -> Iterator[tuple[Step, Answer | None]]:
    """Cut the power of every case that is not skipped and can be cut, and every seed.

    `states` distinct states of each case are judged, shared out over its seeds. Yields the answer
    of each seed as soon as its share is judged; a case that fails has no answer,
    and its step says why. jojlab.analysis.run.survival makes a verdict of the answers.
    """
    return _run(_asked(planned, images, lab, states), lab, watcher)


def cut_run(
    run: RunFolder, planned: Plan, images: Images, lab: Lab, states: int, watcher: Watcher
) -> Iterator[Step]:
    """Cut the power of every capture of a run that has no answer yet; put the answers into it.

    A case whose power cannot be cut, or where that fails, is marked so.
    """
    for case in planned.experiment.cases:
        if run.case(case.case_id).captures and (reason := unfit(case)):
            run.mark_uncut(case.case_id, reason)
    asked = [
        replace(each, answers=left)
        for each in _asked(planned, images, lab, states)
        if (left := _left(run, each))
    ]
    with run.many_changes():
        for step, answer in _run(asked, lab, watcher):
            yield _put(run, step, answer)


def steps_left(run: RunFolder, planned: Plan) -> int:
    """Return how many captures of a run have no answer yet, of cases whose power can be cut."""
    cases = [case for case in planned.experiment.cases if not unfit(case)]
    return sum(len(run.case(case.case_id).without_power_cuts) for case in cases)


def outlook(planned: Plan, images: Images, lab: Lab, states: int) -> str:
    """Say how much is to be judged, as the cache has not got it, and how long that takes; empty
    below two minutes.
    """
    asked = _asked(planned, images, lab, states)
    left = [(each, sum(not lab.is_cached(job) for job in each.jobs)) for each in asked]
    guests = sum(count for _, count in left)
    wanted = sum(each.states * count // len(each.jobs) for each, count in left)
    seconds = (guests * USUAL_CASE_S + wanted * USUAL_STATE_S) / lab.options.jobs
    if seconds < SHORT_S:
        return ""
    return (
        f"{wanted:,} states to judge by {guests} guests, {lab.options.jobs} at a time: some "
        f"{span(seconds)}, by {USUAL_STATE_S:g} s a state; Ctrl-C keeps what guests have finished"
    )


def guests_kept(planned: Plan, images: Images, lab: Lab, states: int) -> tuple[int, int]:
    """Return of how many guests the cache has what they judged, and how many judge all."""
    jobs = [job for each in _asked(planned, images, lab, states) for job in each.jobs]
    return sum(lab.cache.has(job.key) for job in jobs), len(jobs)


def take_known(run: RunFolder, planned: Plan, images: Images, lab: Lab, states: int) -> None:
    """Put those answers into a run folder that the cache has whole."""
    known = [
        replace(each, answers=left)
        for each in _asked(planned, images, lab, states)
        if all(lab.is_cached(job) for job in each.jobs) and (left := _left(run, each))
    ]
    for step, answer in _run(known, lab, Unwatched()):
        _put(run, step, answer)


def verdicts(cases: Sequence[Case], answers: Mapping[str, Sequence[Answer]]) -> list[CaseSummary]:
    """Return what survives of the cases that have answers, by case_id; they have no figures.

    An adviser may ask as joj verify durability does.
    """
    return [
        CaseSummary(
            case.case_id,
            case.case_id,
            case.settings,
            "ok",
            "",
            hazards=hazards(
                case.settings, observation=(observation := observation_before_run(case))
            ),
            unknowns=unknowns(case.settings, observation),
            survival=survival(sorted(found, key=lambda answer: answer.seed)),
        )
        for case in cases
        if (found := [conform(answer, PowerCuts) for answer in answers.get(case.case_id, ())])
    ]


def observation_before_run(case: Case) -> Observation:
    """Return what is known of a case before it runs: which databases its scripts attach. Of a
    replay's commits nothing is.
    """
    scripts = case.inputs.get("scripts")
    return Observation(databases=script_facts(scripts).databases) if scripts else Observation()


def _asked(planned: Plan, images: Images, lab: Lab, states: int) -> list[_Parts]:
    """Return what gives the answers of `states` states a case.

    Its seeds share them out: each is a run of its own, whose contents and moments are others, so
    that together they have as many distinct states as one of them would have.
    """
    share = -(-states // len(planned.experiment.seeds))
    return [
        _Parts(share, power_cuts(each.job, share), answers)
        for each in jobs_of(planned, images, lab.cache)
        if (answers := tuple(own for own in each.answers if not unfit(own[0])))
    ]


def _left(run: RunFolder, asked: _Parts) -> tuple[tuple[Case, int], ...]:
    """Return those of which the run folder has a capture, but no answer."""
    return tuple(
        (case, seed)
        for case, seed in asked.answers
        if seed in run.case(case.case_id).without_power_cuts
    )


def _run(
    asked: Sequence[_Parts], lab: Lab, watcher: Watcher
) -> Iterator[tuple[Step, Answer | None]]:
    """Run the parts of every answer, and yield an answer with its last part."""
    parts = [(each, job) for each in asked for job in each.jobs]
    named = Named([AskedJob(job, each.answers) for each, job in parts], watcher)
    outcomes: dict[int, dict[int, Outcome | Failed]] = {}
    with contextlib.closing(lab.run([job for _, job in parts], named)) as done:
        for number, outcome in done:
            each = parts[number][0]
            own = outcomes.setdefault(id(each), {})
            own[number] = outcome
            if len(own) < len(each.jobs):
                continue
            answer = _merged([own[place] for place in sorted(own)])
            cached = all(isinstance(it, Outcome) and it.from_cache for it in own.values())
            for case, seed in each.answers:
                if isinstance(answer, str):
                    yield Step(case.case_id, seed, failure=named_here(answer, case)), None
                else:
                    yield Step(case.case_id, seed, cached=cached), answer
            outcomes[id(each)] = {}


def _merged(parts: Sequence[Outcome | Failed]) -> Answer | str:
    """Return the answer of its parts, or why there is none."""
    found = []
    try:
        for part in parts:
            if isinstance(part, Failed):
                return part.why
            found.append(part.answer(Kind.POWER_CUTS))
        return merged(found)
    except JojError as error:
        return str(error)


def _put(run: RunFolder, step: Step, answer: Answer | None) -> Step:
    """Put an answer into the run folder, or mark there why there is none."""
    if answer is None:
        run.mark_uncut(step.case_id, f"seed {step.seed}: {step.failure}")
        return step
    try:
        content = json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()
        run.add_power_cuts(step.case_id, step.seed, content, cached=step.cached)
    except DataError as error:
        run.mark_uncut(step.case_id, f"seed {step.seed}: {error.message}")
        return Step(step.case_id, step.seed, failure=str(error))
    return step
