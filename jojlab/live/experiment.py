"""An experiment's cases in a place of this machine, one after the other in real time, into a run
folder.

Every seed runs all cases before the next one begins, so that what changes slowly, as a part's wear,
meets all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jojlab.campaign.progress import RunProgress, Step
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import chooses_buffers, is_on_raw_nand
from jojlab.experiment.read import Experiment
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, Signalled, UseError, signal_of
from jojlab.foundation.places import agent_path
from jojlab.live.agent import LivePlace, run_agent
from jojlab.live.bench import live_fingerprint
from jojlab.model.field import Value
from jojlab.trace.run_folder import RunFolder

# The machine decides these; of its filesystem and how it is mounted the case decides.
_OF_THE_DEVICE = (
    "device", "kernel", "machine", "journal_device", "completion", "mkfs_options",
)  # fmt: skip


def refuse_cases(asked: Experiment) -> None:
    """Raise UseError unless every case is of a filesystem on raw NAND, and no two of them are the
    same on this machine.
    """
    others = {str(each.settings["filesystem"]) for each in asked.cases if not _fits(each)}
    if others:
        raise UseError(
            f"{asked.where}: --clock wall is for filesystems on raw NAND, and not for "
            f"{', '.join(sorted(others))}",
            "add --set filesystem=ubifs; on a disk of this machine, use joj bench",
        )
    known: dict[tuple[tuple[str, Value], ...], Case] = {}
    for case in asked.cases:
        first = known.setdefault(tuple(sorted(live_case(case).items())), case)
        if first is not case:
            names = [n for n in case.settings if case.settings[n] != first.settings.get(n)]
            raise UseError(
                f"{asked.where}: --clock wall: {first.case_id} and {case.case_id} differ only in "
                f"what this machine decides ({', '.join(names)})",
                f"give one value: --set {names[0]}={first.settings.get(names[0], '...')}",
            )


def _fits(case: Case) -> bool:
    return is_on_raw_nand(case.settings)


def needs_own_build(asked: Experiment) -> bool:
    """Whether a case chooses the allocator of UBI's and UBIFS's buffers."""
    return any(chooses_buffers(case.settings) for case in asked.cases)


def live_case(case: Case) -> dict[str, Value]:
    """Return the record of a case of the lab as one of this machine."""
    return {
        name: value
        for name, value in case.settings.items()
        if name not in _OF_THE_DEVICE and "." not in name
    }


def run_experiment(
    asked: Experiment, place: LivePlace, out: Path, watcher: RunProgress
) -> RunFolder:
    """Run every case that can be run, for every seed, into the run folder `out`.

    A case that fails is marked, and does not keep others from running. An interrupted run is taken
    up again. Raises UseError for a wrong case, and Signalled when asked to end.
    """
    agent = agent_path()
    settings = {case.case_id: live_case(case) for case in asked.cases}
    run = RunFolder.create(
        out,
        experiment=asked.record(),
        seeds=asked.seeds,
        cases=list(settings.items()),
        fingerprint=live_fingerprint(agent),
        experiment_toml=asked.text,
    )
    with run.many_changes():
        for case in asked.cases:
            if case.skip:
                run.mark(case.case_id, "skipped", case.skip)
        try:
            for seed in asked.seeds:
                for case in asked.cases:
                    if case.skip:
                        continue
                    watcher.finished(_step(run, agent, place, case, settings, seed, watcher))
        except KeyboardInterrupt as error:  # between two cases; an agent answers a signal itself
            raise Signalled(signal_of(error)) from None
    return run


def _step(
    run: RunFolder,
    agent: Path,
    place: LivePlace,
    case: Case,
    settings: Mapping[str, Mapping[str, Value]],
    seed: int,
    watcher: RunProgress,
) -> Step:
    name = case.case_id
    if any(capture.seed == seed for capture in run.case(name).captures):
        return Step(name, seed, is_there=True)
    watcher.stage(name, seed, "run")
    try:
        with Cache.default().work_dir() as tables:
            run_agent(agent, place, settings[name], seed, tables, lambda _: None)
            run.add_capture(name, seed, tables)
    except MachineError as error:
        run.mark(name, "failed", f"seed {seed}: {error}")
        return Step(name, seed, failure=str(error))
    return Step(name, seed)
