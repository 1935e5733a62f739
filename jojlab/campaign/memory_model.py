"""What the memory of a core adds to an experiment's cases: each run again with the model of its
caches and TLBs, which counts every part of the run.

A result of its own: the tables of the run are left as they are. jojlab/analysis/study/memory_model
reads what is written here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.campaign.jobs import JobRequest
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import by_wall_clock
from jojlab.foundation.errors import UseError
from jojlab.guest.memory_model import CORES, Core
from jojlab.lab.job import Job
from jojlab.lab.lab import JobProgress, Lab
from jojlab.lab.memory_model import Counts, Modelled, ModelledPart, modelled_job, read_modelled
from jojlab.lab.outcome import Failed, Outcome
from jojlab.model.architecture import X86_64

# Functions of a part that are kept, those that the model adds most to.
MOST_FUNCTIONS = 12


@dataclass(frozen=True)
class ModelledCase:
    """One case: by seed, what the model counted."""

    case: Case
    by_seed: Mapping[int, Modelled]


def core_named(name: str) -> Core:
    """Return a core; UseError where there is none of that name."""
    if name not in CORES:
        raise UseError(f"no memory model {name!r}", f"one of: {', '.join(CORES)}")
    return CORES[name]


def refuse_unmodelled(cases: Sequence[Case]) -> None:
    """Raise UseError where a case runs by the clock on the wall, or not on x86-64."""
    if others := {str(case.settings["machine"]) for case in cases} - {X86_64.name}:
        raise UseError(
            f"--memory-model: the plugin is for machine={X86_64.name}, not {', '.join(others)}",
            f"drop --memory-model, or add --set machine={X86_64.name}",
        )
    if by_wall_clock(cases):
        raise UseError(
            "--memory-model: cases of emulated devices run by the clock on the wall",
            "drop --memory-model, or use a modelled device",
        )


def model_run(
    jobs: Sequence[JobRequest], lab: Lab, core: Core, tell: Callable[[str], None]
) -> list[ModelledCase]:
    """Run every job with the model of a core; the plain ones are in the cache, or run too.

    `tell` hears which case is done. Raises what a job fails by.
    """
    plain: dict[int, Outcome] = {}
    for number, outcome in _run(lab, [each.job for each in jobs]):
        plain[number] = outcome
    modelled = [modelled_job(each.job, plain[n], core) for n, each in enumerate(jobs)]
    found: dict[str, tuple[Case, dict[int, Modelled]]] = {}
    for done, (number, outcome) in enumerate(_run(lab, modelled), 1):
        asked = jobs[number]
        tell(f"[{done}/{len(jobs)}] {asked.answers[0][0].case_id}, seed {asked.answers[0][1]}")
        for case, seed in asked.answers:
            counted = read_modelled(plain[number], outcome)
            found.setdefault(case.case_id, (case, {}))[1][seed] = counted
    order = dict.fromkeys(case.case_id for asked in jobs for case, _ in asked.answers)
    return [ModelledCase(found[name][0], dict(sorted(found[name][1].items()))) for name in order]


def _run(lab: Lab, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
    with contextlib.closing(lab.run(jobs, JobProgress())) as outcomes:
        for number, outcome in outcomes:
            if isinstance(outcome, Failed):
                raise outcome.error
            yield number, outcome


def model_json(core: Core, cases: Sequence[ModelledCase]) -> dict[str, Any]:
    """Return what the run folder keeps: counts and added times by case, seed and part of the run;
    of each in all, by buffer, and by function.
    """
    return {
        "core": core.name,
        "title": core.title,
        "sources": list(core.sources),
        "cases": [
            {
                "case_id": each.case.case_id,
                "seeds": {
                    str(seed): {name: _part(part, core) for name, part in found.items()}
                    for seed, found in each.by_seed.items()
                },
            }
            for each in cases
        ],
    }


def _part(part: ModelledPart, core: Core) -> dict[str, Any]:
    return {
        "all": _counts(part.all, core),
        "buffers": {name: _counts(each, core) for name, each in part.buffers.items()},
        "functions": {name: _counts(part.code[name], core) for name in costly(part, core)},
    }


def costly(part: ModelledPart, core: Core) -> list[str]:
    """Return the functions that the model adds most to, the first first."""
    return sorted(part.code, key=lambda name: (-part.code[name].added_ns(core), name))[
        :MOST_FUNCTIONS
    ]


def _counts(counts: Counts, core: Core) -> dict[str, float]:
    return {**vars(counts), "added_ns": counts.added_ns(core)}
