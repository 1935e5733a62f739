"""A live workload, seed after seed, into a run folder that joj show, report and diff read."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, Signalled, signal_of
from jojlab.foundation.hashing import sha256_file
from jojlab.foundation.places import agent_path
from jojlab.live.agent import LivePlace, run_agent
from jojlab.model.field import Value
from jojlab.trace.run_folder import RunFolder

CASE_ID = "live"


@dataclass(frozen=True)
class Bench:
    """What is asked: a workload's fields, a directory of this machine, and seeds."""

    name: str
    directory: Path
    settings: Mapping[str, Value]
    seeds: Sequence[int]


class BenchWatcher(Protocol):
    """What hears how a bench goes on."""

    def stage(self, seed: int, stage: str) -> None:
        """The run of `seed` has come to a stage of the agent's."""

    def finished(self, seed: int) -> None:
        """The run of `seed` is done."""


def run_bench(bench: Bench, out: Path, progress: BenchWatcher) -> RunFolder:
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
