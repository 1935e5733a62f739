"""Runs an experiment: its cases in guests, several at a time, into a run folder. A case that fails
is recorded with its reason and does not affect others. Finished cases are in the cache, so an
interrupted run continues from there when it is started again.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from jojlab.device.emulated import EMULATED
from jojlab.device.profile import Profile, read_profile
from jojlab.experiment.cases import Case, refuse_alone
from jojlab.experiment.devices import by_wall_clock, expected_bytes, profile_of, refuse_devices
from jojlab.experiment.fields import NO_DEVICE
from jojlab.experiment.read import Experiment
from jojlab.experiment.tries import failure, tried
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError, JojError
from jojlab.guest.image.build import Image
from jojlab.guest.image.ready import ready_image, ready_wall_image
from jojlab.guest.runner import CASE_TIMEOUT_S, run_case
from jojlab.guest.wall_clock import host, run_by_wall_clock
from jojlab.trace.run_folder import RunFolder, folder_name

# Where the tables of a case are, and whether they came from the cache.
_Had = tuple[Path, bool]


@dataclass(frozen=True)
class Step:
    """What became of one case and seed; `failure` is empty when it is in the run folder."""

    case_id: str
    seed: int
    cached: bool = False
    failure: str = ""


class Watcher(Protocol):
    """Is notified of a run's progress."""

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """One case and seed is at `stage` of run_case; called by the thread that runs it."""

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
class Options:
    """How to run: guests at a time, whether to use results of the cache, real seconds a case,
    more for one whose guest needs more memory."""

    jobs: int = 1
    use_cache: bool = True
    timeout_s: float = CASE_TIMEOUT_S


def plan(experiment: Experiment) -> tuple[Experiment, dict[str, Profile]]:
    """Read the device profiles, and skip the cases whose filesystem does not fit on its device.

    Raises UseError for a bad profile, for devices of two clocks, or when no case is left.
    """
    by_wall_clock(experiment.cases)
    names = dict.fromkeys(
        str(case.settings[field])
        for field in ("device", "journal_device")
        for case in experiment.cases
        if case.settings[field] != NO_DEVICE
    )
    profiles = {name: read_profile(name) for name in names if name not in EMULATED}
    cases = [
        replace(case, skip=case.skip or refuse_devices(case.settings, profiles))
        for case in experiment.cases
    ]
    refuse_alone(cases, experiment.where)
    return replace(experiment, cases=tuple(cases)), profiles


@dataclass(frozen=True)
class Laboratory:
    """What cases are run with."""

    image: Image
    cache: Cache
    profiles: dict[str, Profile]
    options: Options

    @classmethod
    def of(
        cls, planned: Experiment, cache: Cache, profiles: dict[str, Profile], options: Options
    ) -> Laboratory:
        """Make the image that the cases need, if need be.

        By the clock on the wall guests take turns: one beside another would slow it down.
        """
        if by_wall_clock(planned.cases):
            return cls(ready_wall_image(cache), cache, profiles, replace(options, jobs=1))
        return cls(ready_image(cache), cache, profiles, options)


def execute(experiment: Experiment, lab: Laboratory, out: Path, watcher: Watcher) -> RunFolder:
    """Run every case of a planned experiment into the run folder `out`: a new one, or one of the
    very same run that was cut short, whose captures are kept.

    Failed cases do not raise: they are marked in the run folder. Raises MachineError when the run
    folder cannot be written, and KeyboardInterrupt once the guests are gone.
    """
    fingerprint = {"image": lab.image.fingerprint, **lab.image.manifest}
    if by_wall_clock(experiment.cases):
        fingerprint["host"] = host()
    run = RunFolder.create(
        out,
        experiment=experiment.record(),
        seeds=experiment.seeds,
        cases=[(case.case_id, case.settings) for case in experiment.cases],
        fingerprint=fingerprint,
        experiment_toml=experiment.text,
    )
    asked = [left for same in todo(experiment, lab) if (left := _left(run, same))]

    def again(number: int, why: str) -> None:
        case, seed = asked[number][0]
        watcher.again(Step(case.case_id, seed, failure=why))

    with (
        run.many_changes(),
        lab.cache.work_dir() as work,
        ThreadPoolExecutor(lab.options.jobs) as pool,
    ):
        for case in experiment.cases:
            if case.skip:
                run.mark(case.case_id, "skipped", case.skip)
        tasks = [functools.partial(_run, lab, *same[0], work, watcher) for same in asked]
        with contextlib.closing(tried(pool, enumerate(tasks), again)) as done:
            for number, future in done:
                for case, seed in asked[number]:
                    watcher.finished(_finish(run, case, seed, future))
    return run


def todo(experiment: Experiment, lab: Laboratory) -> list[list[tuple[Case, int]]]:
    """Return what is to be run: cases and seeds, those together that are the same to the guest.

    Every case has its first seed before any has its second: by the clock on the wall cases that
    are compared meet the same moods of the machine.
    """
    found: dict[tuple[bytes, int], list[tuple[Case, int]]] = {}
    for seed in experiment.seeds:
        for case in experiment.cases:
            if case.skip:
                continue
            record = case_json(case, seed, lab.profiles)
            same = found.setdefault((record, shift_of(case, lab.profiles)), [])
            same.append((case, seed))
    return list(found.values())


def _left(run: RunFolder, same: list[tuple[Case, int]]) -> list[tuple[Case, int]]:
    """Return those that the run folder does not have yet."""
    return [
        (case, seed)
        for case, seed in same
        if all(capture.seed != seed for capture in run.case(case.case_id).captures)
    ]


def case_json(case: Case, seed: int, profiles: Mapping[str, Profile]) -> bytes:
    """Return the record that the agent is given (agent/src/record/job.rs)."""
    name = str(case.settings["device"])
    # The agent has no word for a key of a profile: it gets the profile's numbers as they are then.
    fields = {field: value for field, value in case.settings.items() if "." not in field}
    record: dict[str, Any] = {"job": "case", "seed": seed, "case": fields}
    if name in EMULATED:
        record["disk"] = EMULATED[name].disk
    else:
        modelled = profile_of(case.settings, profiles)
        journal = profile_of(case.settings, profiles, "journal_device")
        assert modelled
        record["device_model"] = dict(modelled.model)
        record["journal_model"] = dict(journal.model) if journal else None
    return json.dumps(record).encode()


def shift_of(case: Case, profiles: Mapping[str, Profile]) -> int:
    """Return the icount_shift of a case's device; 0 where it is emulated, and nothing counts."""
    profile = profile_of(case.settings, profiles)
    return profile.icount_shift if profile else 0


def _run(lab: Laboratory, case: Case, seed: int, work: Path, watcher: Watcher) -> _Had:
    """Run one case in a guest, or take it from the cache."""
    name, record = str(case.settings["device"]), case_json(case, seed, lab.profiles)
    folder = work / f"{folder_name(case.case_id)}-{seed}"
    timeout_s = lab.options.timeout_s

    def tell(stage: str) -> None:
        watcher.stage(case.case_id, seed, stage)

    if name in EMULATED:
        outcome = run_by_wall_clock(
            lab.cache, lab.image, record, name, folder, timeout_s=timeout_s, on_progress=tell
        )
    else:
        outcome = run_case(
            lab.cache,
            lab.image,
            record,
            shift_of(case, lab.profiles),
            folder,
            contents_bytes=expected_bytes(case.settings, lab.profiles),
            timeout_s=timeout_s,
            use_cached=lab.options.use_cache,
            on_progress=tell,
        )
    return folder, outcome.from_cache


def _finish(run: RunFolder, case: Case, seed: int, future: Future[_Had]) -> Step:
    """Take a finished case into the run folder, or mark why it failed.

    Raises MachineError when the run folder cannot be written.
    """
    try:
        folder, cached = future.result()
    except (JojError, OSError) as error:
        return _failed(run, case, seed, error)
    try:
        run.add_capture(case.case_id, seed, folder, cached=cached)
    except DataError as error:
        return _failed(run, case, seed, error)
    return Step(case.case_id, seed, cached=cached)


def _failed(run: RunFolder, case: Case, seed: int, error: Exception) -> Step:
    why = failure(error)
    run.mark(case.case_id, "failed", f"seed {seed}: {why}")
    return Step(case.case_id, seed, failure=why)
