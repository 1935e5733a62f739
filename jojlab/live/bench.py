"""A live workload, seed after seed, into a run folder that joj show, report and diff read."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jojlab.experiment.cases import complete
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, Signalled, UseError, signal_of
from jojlab.foundation.hashing import sha256_file
from jojlab.foundation.places import agent_path
from jojlab.live.agent import LivePlace, run_agent
from jojlab.model.field import Field, FieldKind, Value
from jojlab.model.fields import BY_NAME, FIELDS
from jojlab.model.workloads import WORKLOADS
from jojlab.trace.run_folder import RunFolder

# The directory and its machine decide these, not the case.
OF_THE_LAB = tuple(field.name for field in FIELDS if field.is_of_target)
# The guest's memory limits the lab; here only the filesystem's free space does.
_HIGHEST = {"file_bytes": 1 << 44}


def live_fields(workloads: tuple[str, ...]) -> list[Field]:
    """Return the fields of live cases of these workloads, of which the first is the default."""
    fields = []
    for field in FIELDS:
        if field.name in OF_THE_LAB or not any(map(field.applies, workloads)):
            continue
        if field.name == "workload":
            field = replace(field, choices=workloads, default=workloads[0])
        fields.append(replace(field, highest=_HIGHEST.get(field.name, field.highest)))
    return fields


def live_settings(given: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Return the record of a live case: what was given, and the defaults.

    Raises UseError for a field that the workload does not have, or lacks, and for a folder that is
    not there.
    """
    workload = given.get("workload", BY_NAME["workload"].default)
    assert workload is not None
    for name in given:
        if not BY_NAME[name].applies(workload):
            raise UseError(
                f"{where}: {workload} has no field {name}",
                f"drop it; it is for {', '.join(BY_NAME[name].workloads)}",
            )
    need = WORKLOADS[str(workload)].needs
    if need and not given.get(need):
        raise UseError(f"{where}: {workload} needs {need} = FOLDER", f"give it: --{need} FOLDER")
    for name, value in given.items():
        if BY_NAME[name].kind is FieldKind.FOLDER and value and not Path(str(value)).is_dir():
            raise UseError(f"{where}: {name} = {value!r}: no such folder", "name a folder")
    return {name: value for name, value in complete(given).items() if name not in OF_THE_LAB}


CASE_ID = "live"


@dataclass(frozen=True)
class Bench:
    """What is asked: a workload's fields, a directory of this machine, and seeds."""

    name: str
    directory: Path
    settings: Mapping[str, Value]
    seeds: Sequence[int]


class BenchProgress:
    """Is notified of the progress of live runs, and ignores it; a subclass shows it."""

    def stage(self, seed: int, stage: str) -> None:
        """The run of `seed` has come to a stage of the agent's."""

    def finished(self, seed: int) -> None:
        """The run of `seed` is done."""


def run_bench(bench: Bench, out: Path, progress: BenchProgress) -> RunFolder:
    """Run the workload once for each seed, into the new run folder `out`.

    Raises UseError or MachineError when it cannot be run, and Signalled when asked to end.
    """
    agent = agent_path()
    was_there = out.exists()
    run = RunFolder.create(
        out,
        experiment={
            "name": bench.name,
            "question": f"What does it cost in {bench.directory}?",
            "settings": {"fixed": dict(bench.settings), "matrix": {}},
        },
        seeds=bench.seeds,
        cases=[(CASE_ID, bench.settings)],
        fingerprint=live_fingerprint(agent),
    )
    try:
        for seed in bench.seeds:
            with Cache.default().work_dir() as tables:
                stage = functools.partial(progress.stage, seed)
                run_agent(agent, LivePlace(bench.directory), bench.settings, seed, tables, stage)
                run.add_capture(CASE_ID, seed, tables)
            progress.finished(seed)
    except KeyboardInterrupt as error:  # between two runs; an agent answers a signal itself
        ended = Signalled(signal_of(error))
        _end_early(run, was_there, ended)
        raise ended from None
    except JojError as error:
        _end_early(run, was_there, error)
        raise
    return run


def _end_early(run: RunFolder, was_there: bool, error: JojError) -> None:
    """Keep a run that has captures, with the reason why it has no more; remove an empty one."""
    if run.cases[0].captures:
        run.mark(CASE_ID, "failed", error.message)
        return
    shutil.rmtree(run.path)
    if was_there:
        run.path.mkdir()


def live_fingerprint(agent: Path) -> dict[str, Any]:
    """Return what of this machine the results of a live run depend on, as far as it has a name."""
    machine = os.uname()
    return {
        "agent_sha256": sha256_file(agent),
        "kernel_release": machine.release,
        "machine": machine.machine,
    }
