"""The outcomes of power cuts on the cases of an experiment: asked of guests, or taken from the
cache.

Reads the cases of an experiment; cuts the power of each in guests (agent/src/lab/power_cut);
produces an answer for every case and seed, and puts them into a run folder.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jojlab.analysis.run.durability import summarise_power_cuts
from jojlab.analysis.run.risks import hazards, unknowns
from jojlab.analysis.run.summary import CaseSummary, with_program
from jojlab.campaign.jobs import JobRequest, NumberedJobs, RunProgress, Step, named_here
from jojlab.device.profile import EMULATED
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import is_on_raw_nand
from jojlab.foundation.document import conform
from jojlab.foundation.errors import DataError, JojError
from jojlab.lab.job import Job, Kind
from jojlab.lab.lab import Lab
from jojlab.lab.outcome import FailedJob, Outcome
from jojlab.lab.power_cuts import merge_answers, power_cuts
from jojlab.model.architecture import X86_64
from jojlab.model.hazards import Observation
from jojlab.model.workloads import workload_of
from jojlab.recording.sql_text import script_facts
from jojlab.trace.power_cuts import PowerCuts
from jojlab.trace.run_folder import RunFolder

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class PowerCutRequest:
    """The jobs that together judge a number of states of some cases and seeds."""

    states: int
    jobs: tuple[Job, ...]
    answers: tuple[tuple[Case, int], ...]


def exclusion_reason(case: Case) -> str:
    """Return why the power of a case cannot be cut; empty where it can."""
    settings = case.settings
    if reason := workload_of(settings).uncuttable(settings):
        return reason
    if str(settings["device"]) in EMULATED:
        return f"device {settings['device']}: only a modelled device records what is written"
    return ""


def native_refusal(case: Case) -> str:
    """Return why User Mode Linux cannot judge a case; empty where it can."""
    settings = case.settings
    if not workload_of(settings).is_judged_anywhere:
        return f"workload {settings['workload']}: its states are judged in the guest that ran it"
    if settings["background"] != "none":
        return "a background load beside it is judged in the guest that ran it"
    if settings["failed_sync"] or settings["free_kib"]:
        return "failed_sync, free_kib and --faults: what errors leave is judged in the guest"
    if is_on_raw_nand(settings):
        return f"filesystem {settings['filesystem']}: raw NAND is modelled in guests alone"
    if settings["machine"] != X86_64.name:
        return f"machine {settings['machine']}: User Mode Linux is of {X86_64.name}"
    return ""


def steps_left(run: RunFolder, cases: Iterable[Case]) -> int:
    """Return how many captures of a run have no answer yet, of cases whose power can be cut."""
    cases = [case for case in cases if not exclusion_reason(case)]
    return sum(len(run.case(case.case_id).without_power_cuts) for case in cases)


def verdicts(cases: Sequence[Case], answers: Mapping[str, Sequence[Answer]]) -> list[CaseSummary]:
    """Return what survives of the cases that have answers, by case_id; they have no figures.

    An adviser may ask as joj verify durability does.
    """
    return [
        _verdict(case, found)
        for case in cases
        if (found := [conform(answer, PowerCuts) for answer in answers.get(case.case_id, ())])
    ]


def _verdict(case: Case, answers: Sequence[PowerCuts]) -> CaseSummary:
    """Return what survives of a case; what is at risk in a program's, its commits say."""
    observation = observation_before_run(case)
    if programs := [each.program for each in answers if each.program]:
        observation = with_program(observation, programs)
    return CaseSummary(
        case.case_id,
        case.case_id,
        case.settings,
        "ok",
        "",
        hazards=hazards(case.settings, observation=observation),
        unknowns=unknowns(case.settings, observation),
        durability=summarise_power_cuts(sorted(answers, key=lambda answer: answer.seed)),
    )


def observation_before_run(case: Case) -> Observation:
    """Return what is known of a case before it runs: which databases its scripts attach, and which
    journal modes they change to.
    """
    scripts = case.inputs.get("scripts")
    if not scripts:
        return Observation()
    facts = script_facts(scripts)
    return Observation(databases=facts.databases, journal_modes=facts.journal_modes)


def requests(
    jobs: Iterable[JobRequest],
    states: int,
    seeds: int,
    cases: Container[str],
    native: Mapping[str, str],
) -> list[PowerCutRequest]:
    """Return what judges `states` states of each of these cases, which have so many seeds; `native`
    has the builds of User Mode Linux that judge in place of the guest, by the case's kernel.

    Its seeds share the states out: each is a run of its own, whose contents and moments are others,
    so that together they have as many distinct states as one of them would have.
    """
    share = -(-states // seeds)
    return [
        PowerCutRequest(
            share,
            power_cuts(each.job, share, native.get(str(answers[0][0].settings["kernel"]), "")),
            answers,
        )
        for each in jobs
        if (
            answers := tuple(
                (case, seed)
                for case, seed in each.answers
                if case.case_id in cases and not exclusion_reason(case)
            )
        )
    ]


def unanswered_request(run: RunFolder, request: PowerCutRequest) -> PowerCutRequest:
    """Return the request for those of which the run folder has a capture, but no answer."""
    answers = tuple(
        (case, seed)
        for case, seed in request.answers
        if seed in run.case(case.case_id).without_power_cuts
    )
    return replace(request, answers=answers)


def run_requests(
    requests: Sequence[PowerCutRequest], lab: Lab, watcher: RunProgress
) -> Iterator[tuple[Step, Answer | None]]:
    """Run the jobs of every request; yield each case and seed with its answer, or None."""
    parts = [(each, job) for each in requests for job in each.jobs]
    named = NumberedJobs([JobRequest(job, each.answers) for each, job in parts], watcher)
    outcomes: dict[int, dict[int, Outcome | FailedJob]] = {}
    with contextlib.closing(lab.run([job for _, job in parts], named)) as done:
        for number, outcome in done:
            each = parts[number][0]
            own = outcomes.setdefault(id(each), {})
            own[number] = outcome
            if len(own) < len(each.jobs):
                continue
            answer = _merge_parts([own[place] for place in sorted(own)])
            cached = all(isinstance(it, Outcome) and it.from_cache for it in own.values())
            for case, seed in each.answers:
                if isinstance(answer, str):
                    yield Step(case.case_id, seed, failure=named_here(answer, case)), None
                else:
                    yield Step(case.case_id, seed, cached=cached), answer
            outcomes[id(each)] = {}


def _merge_parts(parts: Sequence[Outcome | FailedJob]) -> Answer | str:
    """Return the answer of its parts, or why there is none."""
    found = []
    try:
        for part in parts:
            if isinstance(part, FailedJob):
                return part.why
            found.append(part.answer(Kind.POWER_CUTS))
        return merge_answers(found)
    except JojError as error:
        return str(error)


def put_answer(run: RunFolder, step: Step, answer: Answer | None) -> Step:
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
