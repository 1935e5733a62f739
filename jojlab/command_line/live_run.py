"""Runs of this machine in real time: a workload in a directory, or an experiment on raw NAND."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jojlab.command_line.options import CLOCKS
from jojlab.foundation.errors import UseError
from jojlab.foundation.signals import Signalled
from jojlab.live.runner import Bench, run_bench
from jojlab.report.progress import bench_progress
from jojlab.trace.run_folder import RunFolder

if TYPE_CHECKING:
    from jojlab.experiment.read import Experiment


def run_with_progress(bench: Bench, folder: Path) -> RunFolder:
    """Run a bench into a new run folder, telling on stderr how it goes on."""
    workload = bench.settings["workload"]
    with bench_progress(f"{workload} in {bench.directory}", len(bench.seeds)) as progress:
        return run_bench(bench, folder, progress)


def is_by_wall_clock(clock: str, *, has_own_option: bool, refused: dict[str, bool]) -> bool:
    """Return whether cases run on this machine.

    `has_own_option`: an option was given that only such a run has. `refused`: options that it does
    not have, and whether they were given. Raises UseError for an unknown clock, and for these.
    """
    if clock not in CLOCKS:
        raise UseError(f"--clock {clock}", f"one of: {', '.join(CLOCKS)}")
    if clock == CLOCKS[0]:
        if has_own_option:
            raise UseError("--nand and --destroy-data: the clock is virtual", "add --clock wall")
        return False
    if wrong := [name for name, is_there in refused.items() if is_there]:
        raise UseError(f"--clock wall: not with {' and '.join(wrong)}", "drop one of them")
    return True


def run_by_wall_clock(
    experiment: Experiment, node: Path | None, out: Path, *, destroy: bool
) -> None:
    """Run an experiment on raw NAND of this machine, into the run folder `out`.

    Raises UseError and MachineError where that cannot be, before anything is changed.
    """
    from jojlab.foundation.cache import Cache
    from jojlab.live.agent import LivePlace
    from jojlab.live.raw_nand import load_ubifs, refuse_nand
    from jojlab.live.runner import needs_own_build, refuse_cases, run_experiment
    from jojlab.report.progress import run_progress

    refuse_cases(experiment)
    refuse_nand(node, may_destroy=destroy)
    assert node
    load_ubifs(Cache.default(), chosen_buffers=needs_own_build(experiment))
    steps = sum(not case.skip for case in experiment.cases) * len(experiment.seeds)
    try:
        with run_progress(experiment.question, steps) as watcher:
            run_experiment(experiment, LivePlace(node, is_nand=True), out, watcher)
    except Signalled as error:
        raise Signalled(error, f"kept so far: joj show {out}") from None
