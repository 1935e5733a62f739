"""Live workloads: a case in a directory of this machine, or an experiment's cases on its raw NAND,
one after the other in real time, into a run folder that joj show, report and diff read.

Every seed runs all cases before the next one begins, so that what changes slowly, as a part's wear,
meets all of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jojlab.campaign.jobs import RunProgress, Step
from jojlab.experiment.cases import Case, complete, refuse_useless
from jojlab.experiment.plan import chooses_buffers, is_on_raw_nand
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache, sha256_file
from jojlab.foundation.errors import JojError, MachineError, UseError
from jojlab.foundation.places import agent_path
from jojlab.foundation.signals import SignalReceived
from jojlab.live.agent import LivePlace, run_agent
from jojlab.model.field import Field, FieldKind, Value
from jojlab.model.fields import BY_NAME, FIELDS
from jojlab.model.filesystems import RAW_NAND_FILESYSTEMS
from jojlab.model.workload import FAULTS
from jojlab.model.workloads import WORKLOADS
from jojlab.model.workloads.sqlite import BUNDLED
from jojlab.trace.run_folder import RunFolder

# The directory and its machine decide these, not the case.
OF_THE_LAB = tuple(field.name for field in FIELDS if field.is_target_field)
# The guest's memory limits the lab; here only the filesystem's free space does.
_HIGHEST = {"file_bytes": 1 << 44}


def live_fields(workloads: tuple[str, ...]) -> list[Field]:
    """Return the fields of live cases of these workloads, of which the first is the default; none
    that plants an error, as those of a real disk are not ours to plant.
    """
    fields = []
    for field in FIELDS:
        is_of_lab = field.name in OF_THE_LAB or field.group == FAULTS
        if is_of_lab or not any(map(field.applies, workloads)):
            continue
        if field.name == "workload":
            field = replace(field, choices=workloads, default=workloads[0])
        if field.name in _HIGHEST and field.limits:
            field = replace(field, limits=(field.limits[0], _HIGHEST[field.name]))
        fields.append(field)
    return fields


def live_settings(chosen: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Return the record of a live case: what was given, and the defaults.

    Raises UseError for a field that the workload does not have, or lacks, and for a folder that is
    not there.
    """
    workload = chosen.get("workload", BY_NAME["workload"].default)
    assert workload is not None
    refuse_useless(chosen, [workload], where)
    need = WORKLOADS[str(workload)].needs
    if need and not chosen.get(need):
        word = BY_NAME[need].path_word
        raise UseError(f"{where}: {workload} needs {need} = {word}", f"give it: --{need} {word}")
    for name, value in chosen.items():
        if BY_NAME[name].kind is FieldKind.FOLDER and value and not Path(str(value)).is_dir():
            raise UseError(f"{where}: {name} = {value!r}: no such folder", "name a folder")
    return {name: value for name, value in complete(chosen).items() if name not in OF_THE_LAB}


CASE_ID = "live"


@dataclass(frozen=True)
class Bench:
    """A live workload: its fields, a directory of this machine, seeds, and what is to be said of
    where its fields are from.
    """

    name: str
    directory: Path
    settings: Mapping[str, Value]
    seeds: Sequence[int]
    notes: Sequence[str] = ()


def run_bench(bench: Bench, out: Path, progress: RunProgress) -> RunFolder:
    """Run the workload once for each seed, into the new run folder `out`.

    Raises UseError or MachineError when it cannot be run, and SignalReceived when asked to end.
    """
    agent = agent_path()
    was_there = out.exists()
    run = RunFolder.create(
        out,
        experiment={
            "name": bench.name,
            "question": f"What does it cost in {bench.directory}?",
            "settings": {"fixed": dict(bench.settings), "matrix": {}},
            "notes": list(bench.notes),
        },
        seeds=bench.seeds,
        cases=[(CASE_ID, bench.settings)],
        fingerprint=live_fingerprint(agent),
    )
    try:
        for seed in bench.seeds:
            on_stage = partial(progress.stage, CASE_ID, seed)
            _add_run(run, agent, LivePlace(bench.directory), CASE_ID, seed, on_stage)
            progress.note_finished(Step(CASE_ID, seed))
    except KeyboardInterrupt as error:
        ended = SignalReceived(error)
        _end_early(run, was_there, ended.message)
        raise ended from None
    except JojError as error:
        _end_early(run, was_there, error.message)
        raise
    return run


def _end_early(run: RunFolder, was_there: bool, why: str) -> None:
    """Keep a run that has captures, with the reason why it has no more; remove an empty one."""
    if run.cases[0].captures:
        run.mark(CASE_ID, "failed", why)
        return
    shutil.rmtree(run.path)
    if was_there:
        run.path.mkdir()


# The machine decides these; of its filesystem and how it is mounted the case decides.
_OF_THE_DEVICE = set(OF_THE_LAB) - {"filesystem", "mount_options"}


def refuse_cases(experiment: Experiment) -> None:
    """Raise UseError unless the cases are on raw NAND, and no two the same on this machine."""
    settings = [each.settings for each in experiment.cases]
    others = {str(each["filesystem"]) for each in settings if not is_on_raw_nand(each)}
    if others:
        raise UseError(
            f"{experiment.where}: --clock wall is for filesystems on raw NAND, and not for "
            f"{', '.join(sorted(others))}",
            f"add --set filesystem={','.join(RAW_NAND_FILESYSTEMS)}; on a disk of this machine, "
            "use joj bench",
        )
    if any(each.get("sqlite", BUNDLED) != BUNDLED for each in settings):
        raise UseError(
            f"{experiment.where}: --clock wall runs the SQLite of this machine's agent alone",
            "drop sqlite, or run the case in the lab: without --clock wall",
        )
    known: dict[tuple[tuple[str, Value], ...], Case] = {}
    for case in experiment.cases:
        first = known.setdefault(tuple(sorted(live_case(case).items())), case)
        if first is not case:
            names = [n for n in case.settings if case.settings[n] != first.settings.get(n)]
            raise UseError(
                f"{experiment.where}: --clock wall: {first.case_id} and {case.case_id} differ only "
                f"in what this machine decides ({', '.join(names)})",
                f"give one value: --set {names[0]}={first.settings.get(names[0], '...')}",
            )


def needs_own_build(experiment: Experiment) -> bool:
    """Return whether a case chooses the allocator of UBI's and UBIFS's buffers."""
    return any(chooses_buffers(case.settings) for case in experiment.cases)


def live_case(case: Case) -> dict[str, Value]:
    """Return the record of a case of the lab as one of this machine."""
    return {
        name: value
        for name, value in case.settings.items()
        if name not in _OF_THE_DEVICE and "." not in name
    }


def run_experiment(
    experiment: Experiment, place: LivePlace, out: Path, progress: RunProgress
) -> RunFolder:
    """Run every case that can be run, for every seed, into the run folder `out`.

    A case that fails is marked, and does not keep others from running. An interrupted run is taken
    up again. Raises UseError for a wrong case, and SignalReceived when asked to end.
    """
    agent = agent_path()
    run = RunFolder.create(
        out,
        experiment=experiment.record(),
        seeds=experiment.seeds,
        cases=[(case.case_id, live_case(case)) for case in experiment.cases],
        fingerprint=live_fingerprint(agent),
        experiment_toml=experiment.text,
    )
    with run.many_changes():
        for case in experiment.cases:
            if case.skip:
                run.mark(case.case_id, "skipped", case.skip)
        try:
            for seed in experiment.seeds:
                for case in experiment.cases:
                    if not case.skip:
                        progress.note_finished(
                            _step(run, agent, place, case.case_id, seed, progress)
                        )
        except KeyboardInterrupt as error:
            raise SignalReceived(error) from None
    return run


def _step(
    run: RunFolder, agent: Path, place: LivePlace, name: str, seed: int, progress: RunProgress
) -> Step:
    if any(capture.seed == seed for capture in run.case(name).captures):
        return Step(name, seed, is_there=True)
    progress.stage(name, seed, "run")
    try:
        _add_run(run, agent, place, name, seed, lambda _: None)
    except MachineError as error:
        run.mark(name, "failed", f"seed {seed}: {error}")
        return Step(name, seed, failure=str(error))
    return Step(name, seed)


def _add_run(
    run: RunFolder,
    agent: Path,
    place: LivePlace,
    name: str,
    seed: int,
    on_stage: Callable[[str], None],
) -> None:
    """Have the agent run one case of a run folder, and add its capture to that."""
    with Cache.default().work_dir() as tables:
        run_agent(agent, place, run.case(name).case, seed, tables, on_stage)
        run.add_capture(name, seed, tables)


def live_fingerprint(agent: Path) -> dict[str, Any]:
    """Return what of this machine the results of a live run depend on, as far as it has a name."""
    machine = os.uname()
    return {
        "agent_sha256": sha256_file(agent),
        "kernel_release": machine.release,
        "machine": machine.machine,
    }
