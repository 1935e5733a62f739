"""The disks of one state that a power cut left, as image files: the run of its case is performed
again, and put into that state; nothing is mounted before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jojlab.campaign.campaign import options_for
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import jobs_of
from jojlab.experiment.plan import Plan, plan
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError, UseError
from jojlab.foundation.places import EXPERIMENTS
from jojlab.guest import user_mode
from jojlab.lab.job import Options
from jojlab.lab.lab import JobProgress, Lab
from jojlab.lab.outcome import FailedJob, Outcome
from jojlab.lab.power_cuts import disk_image_jobs, write_disk_images
from jojlab.model.field import Value
from jojlab.trace.power_cuts import NATIVE, JudgedState, PowerCuts
from jojlab.trace.run_folder import CaseEntry, RunFolder

# The state that did most harm.
WORST = "worst"


@dataclass(frozen=True)
class FoundState:
    """A state of a run folder: its case, and the answer that it is of."""

    entry: CaseEntry
    answer: PowerCuts
    state: JudgedState


def find_state(run: RunFolder, name: str, case_id: str = "") -> FoundState:
    """Return the state whose hash begins so, or the worst; of one case, where that is named.

    Raises UseError where there is none, or several.
    """
    entries = [run.case(case_id)] if case_id else run.cases
    states = [
        FoundState(entry, answer, state)
        for entry in entries
        for answer in run.power_cuts(entry)
        for state in answer.states
    ]
    if not states:
        raise UseError(f"{run.path}: its power was not cut", "joj run ... --durability")
    if name == WORST:
        harmful = [each for each in states if each.state.outcome != "kept"]
        if not harmful:
            raise UseError(f"{run.path}: no state did harm", "name a state by its hash")
        return max(harmful, key=lambda each: each.state.badness)
    found = [each for each in states if each.state.hash.startswith(name)]
    if len({each.state.hash for each in found}) == 1:
        return found[0]
    what = "several states" if found else "no state"
    raise UseError(
        f"{run.path}: {what} that power cuts left has a hash that begins with {name}",
        f"name it by more digits of its hash, which power-cuts/ has, or as {WORST}",
    )


def write_images(
    run: RunFolder,
    choice: FoundState,
    folder: Path,
    options: Options,
    announce: Callable[[str], None],
) -> list[Path]:
    """Write the disks of a state into a folder; return the files, that of a journal last.

    Raises UseError when a file of the case is not there any more, DataError when the state is not
    found again: this machine's guests, or the case's files, are not those of the run.
    """
    cache = Cache.default()
    planned = _plan(run, choice)
    images = images_of(planned, cache, announce)
    [request] = jobs_of(planned, images, cache)
    if run.fingerprint.get("image") != images.fingerprint.get("image"):
        raise DataError(
            f"{run.path}: its guests were of another image: kernel, agent or tools have changed",
            "run the case and its power cuts again",
        )
    lab = Lab(cache, options_for(planned, options))
    native, why = "", ""
    if choice.state.judge == NATIVE:
        kernel = str(request.answers[0][0].settings["kernel"])
        native = user_mode.build_key(cache, kernel)
        user_mode.build(cache, kernel, native)
    states, state = choice.answer.requested_states, choice.state.hash
    for job in disk_image_jobs(request.job, states, state, native):
        [(_, outcome)] = lab.run([job], JobProgress())
        if isinstance(outcome, Outcome):
            return write_disk_images(outcome.files, folder)
        assert isinstance(outcome, FailedJob)
        why = outcome.why
    raise DataError(f"state {choice.state.hash}: {why}", "run the case and its power cuts again")


def _plan(run: RunFolder, choice: FoundState) -> Plan:
    """Return the plan of the one case and seed."""
    settings: dict[str, Value] = {
        name: value for name, value in choice.entry.case.items() if isinstance(value, str | int)
    }
    folder = EXPERIMENTS / str(run.experiment["name"])
    experiment = Experiment(
        "repro", "", (choice.answer.seed,), settings, {}, where=str(run.path), folder=folder
    )
    return plan(experiment.expand())
