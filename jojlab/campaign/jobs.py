"""The jobs of an experiment: for each case and seed the record that the agent reads, the machine
and the input files; and who is notified of their progress. Cases and seeds that are the same to the
guest are one job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.campaign.images import Images
from jojlab.device.profile import EMULATED, Profile
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import Plan, expected_bytes, profile_of
from jojlab.foundation.cache import Cache
from jojlab.guest.machine import INPUTS, Machine, WallMachine
from jojlab.guest.program_files import found_program, needs
from jojlab.lab.job import Input, Job, Kind, record_of, virtual
from jojlab.lab.lab import JobProgress
from jojlab.lab.tree import members_of, size_bytes
from jojlab.model.architecture import ARCHITECTURES
from jojlab.model.field import FieldKind
from jojlab.model.fields import BY_NAME

# Of an input file, what the guest's memory holds: the file, and what is made of it.
_COPIES = 2
_IN_GUEST = re.compile(rf"{re.escape(INPUTS)}/([a-z_]+)\b(/?)")


def _read_input(cache: Cache, case: Case, name: str, path: Path) -> Input:
    """Return an input of a case; UseError where it cannot be read, or is too large."""
    members = _members(case, name, path)
    if members is None:
        return Input.from_file(cache, name, path)
    is_shared = BY_NAME[name].kind is FieldKind.PROGRAM
    return Input.from_tree(cache, name, members, is_shared=is_shared)


def named_here(text: str, case: Case) -> str:
    """Return what a guest says of a case, with its input files by their names on this machine.

    The folder in which a guest has a program is none of this machine.
    """

    def here(match: re.Match[str]) -> str:
        name, slash = match.groups()
        is_known = name in case.inputs and not (slash and BY_NAME[name].kind is FieldKind.PROGRAM)
        return f"{case.inputs[name]}{slash}" if is_known else match[0]

    return _IN_GUEST.sub(here, text)


def inputs_bytes(case: Case) -> int:
    """Return what the guest's memory holds of a case's inputs, at most."""
    trees = [(_members(case, name, path), path) for name, path in _guest_files(case).items()]
    sizes = [path.stat().st_size if tree is None else size_bytes(tree) for tree, path in trees]
    return _COPIES * sum(sizes)


def _guest_files(case: Case) -> dict[str, Path]:
    """Return the inputs that a guest is given: not what its agent was built with."""
    named = case.inputs.items()
    return {name: path for name, path in named if BY_NAME[name].kind is not FieldKind.SOURCES}


def _members(case: Case, name: str, path: Path) -> Mapping[str, Path | str] | None:
    """Return the tree that a field's value stands for; None where it is one file."""
    if BY_NAME[name].kind is not FieldKind.PROGRAM:
        return members_of(path) if path.is_dir() else None
    others = BY_NAME["other_programs"].words(str(case.settings["other_programs"]), case.case_id)
    return needs(path, [found_program(other, "other_programs = ") for other in others])


# Fields that are no part of the record: three choose the image, and one has set others.
_NOT_OF_RECORD = ("kernel", "machine", "software", "sqlite")


@dataclass(frozen=True)
class JobRequest:
    """A job, and the cases and seeds that its outcome answers."""

    job: Job
    answers: tuple[tuple[Case, int], ...]


def jobs_of(planned: Plan, images: Images, cache: Cache) -> list[JobRequest]:
    """Return the jobs of the cases that are not skipped, with every seed.

    Every case has its first seed before any has its second: by the clock on the wall cases that
    are compared meet the same moods of the machine.
    """
    found: dict[object, tuple[Job, list[tuple[Case, int]]]] = {}
    # What several cases name is read once.
    known: dict[tuple[str, Path, object], Input] = {}
    for seed in planned.experiment.seeds:
        for case in planned.experiment.cases:
            if case.skip:
                continue
            keys = [
                (name, path, case.settings.get("other_programs"))
                for name, path in _guest_files(case).items()
            ]
            for key in keys:
                known[key] = known.get(key) or _read_input(cache, case, *key[:2])
            inputs = tuple(known[key] for key in keys)
            job = Job(
                Kind.CASE,
                case_json(case, seed, planned.profiles),
                images.image_of(case),
                machine_of(case, planned.profiles),
                inputs,
            )
            same = (job.image.fingerprint, job.record, job.machine, inputs)
            found.setdefault(same, (job, []))[1].append((case, seed))
    return [JobRequest(job, tuple(answers)) for job, answers in found.values()]


def case_json(case: Case, seed: int, profiles: Mapping[str, Profile]) -> bytes:
    """Return the record that the agent is given (agent/src/record/job.rs)."""
    name = str(case.settings["device"])
    # The agent has no word for a key of a profile: it gets the profile's numbers as they are then.
    # Nor for its own kernel and machine, nor for a time.
    fields: dict[str, Any] = {
        field: value
        for field, value in case.settings.items()
        if "." not in field and field not in _NOT_OF_RECORD
    }
    fields |= {
        name: BY_NAME[name].words(str(value), name)
        for name, value in fields.items()
        if BY_NAME[name].is_list
    }
    fields |= {field: f"{INPUTS}/{field}" for field in _guest_files(case)}
    record: dict[str, Any] = {"seed": seed, "case": fields}
    if name in EMULATED:
        record["disk"] = EMULATED[name].disk
    else:
        modelled = profile_of(case.settings, profiles)
        journal = profile_of(case.settings, profiles, "journal_device")
        assert modelled
        record["device_model"] = dict(modelled.model)
        record["journal_model"] = dict(journal.model) if journal else None
    return record_of(Kind.CASE, record)


def machine_of(case: Case, profiles: Mapping[str, Profile]) -> Machine | WallMachine:
    """Return the machine of a case; UseError where no guest has memory for it."""
    profile = profile_of(case.settings, profiles)
    if profile is None:
        return WallMachine(str(case.settings["device"]))
    architecture = ARCHITECTURES[str(case.settings["machine"])]
    held_bytes = expected_bytes(case.settings, profiles) + inputs_bytes(case)
    return virtual(profile.icount_shift, held_bytes, architecture)


@dataclass(frozen=True)
class Step:
    """The end of one case and seed; `failure` is empty when it is in the run folder.

    `is_there`: it was, before this run took it up.
    """

    case_id: str
    seed: int
    cached: bool = False
    is_there: bool = False
    failure: str = ""


class RunProgress:
    """A listener to a run's progress that ignores it; a subclass shows it."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Note that one case and seed is at a stage of JobProgress; called by any thread."""

    def again(self, step: Step) -> None:
        """Note that one case and seed failed and is tried once more."""

    def note_finished(self, step: Step) -> None:
        """Note that one case and seed is done; called by the thread that runs the campaign."""


@dataclass(frozen=True)
class NumberedJobs(JobProgress):
    """Passes the progress of numbered jobs on, by the first case and seed of each."""

    requests: Sequence[JobRequest]
    watcher: RunProgress

    def stage(self, number: int, stage: str) -> None:
        """Pass the stage of a job on."""
        case, seed = self.requests[number].answers[0]
        self.watcher.stage(case.case_id, seed, stage)

    def again(self, number: int, why: str) -> None:
        """Pass a failure on."""
        case, seed = self.requests[number].answers[0]
        self.watcher.again(Step(case.case_id, seed, failure=why))
