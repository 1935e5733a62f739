"""What the memory of a core adds to an experiment's cases: each run again with the model of its
caches and TLBs, and the time of its misses added to the measured phase afterwards.

A result of its own: the tables of the run are left as they are.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.campaign.jobs import AskedJob
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import by_wall_clock
from jojlab.foundation.errors import UseError
from jojlab.guest.memory_model import CORES, Core
from jojlab.lab.lab import Lab
from jojlab.lab.memory_model import Counts, Modelled, modelled_job, read_modelled

# Functions of a case that are shown, those that the model adds most to.
MOST_FUNCTIONS = 12


@dataclass(frozen=True)
class ModelledCase:
    """One case: by seed, what the model counted."""

    case: Case
    by_seed: Mapping[int, Modelled]

    def added_ns(self, core: Core, transactions: int) -> tuple[float, float, float]:
        """Return median, smallest and largest over the seeds of what is added to a transaction."""
        each = [found.all.added_ns(core) / transactions for found in self.by_seed.values()]
        return statistics.median(each), min(each), max(each)


def core_named(name: str) -> Core:
    """Return a core; UseError where there is none of that name."""
    if name not in CORES:
        raise UseError(f"no memory model {name!r}", f"one of: {', '.join(CORES)}")
    return CORES[name]


def refuse_unmodelled(cases: Sequence[Case]) -> None:
    """Raise UseError where a case runs by the clock on the wall."""
    if by_wall_clock(cases):
        raise UseError(
            "--memory-model: cases of emulated devices run by the clock on the wall",
            "drop --memory-model, or use a modelled device",
        )


def model_run(
    jobs: Sequence[AskedJob], lab: Lab, core: Core, tell: Callable[[str], None]
) -> list[ModelledCase]:
    """Run every job with the model of a core; the plain ones are in the cache, or run too.

    `tell` hears which case is next. Raises what a job fails by.
    """
    found: dict[str, tuple[Case, dict[int, Modelled]]] = {}
    for number, each in enumerate(jobs, 1):
        tell(f"[{number}/{len(jobs)}] {each.answers[0][0].case_id}, seed {each.answers[0][1]}")
        plain = lab.run_one(each.job)
        modelled = read_modelled(plain, lab.run_one(modelled_job(each.job, core)))
        for case, seed in each.answers:
            found.setdefault(case.case_id, (case, {}))[1][seed] = modelled
    return [ModelledCase(case, seeds) for case, seeds in found.values()]


def model_json(core: Core, cases: Sequence[ModelledCase]) -> dict[str, Any]:
    """Return what the run folder keeps: counts and added times by case, seed, buffer, function."""
    return {
        "core": core.name,
        "title": core.title,
        "sources": list(core.sources),
        "cases": [
            {
                "case_id": each.case.case_id,
                "seeds": {
                    str(seed): {
                        "all": _counts(found.all, core),
                        "buffers": {k: _counts(v, core) for k, v in found.buffers.items()},
                        "functions": {
                            name: _counts(found.code[name], core) for name in costly(found, core)
                        },
                    }
                    for seed, found in each.by_seed.items()
                },
            }
            for each in cases
        ],
    }


def costly(found: Modelled, core: Core) -> list[str]:
    """Return the functions that the model adds most to, the first first."""
    return sorted(found.code, key=lambda name: (-found.code[name].added_ns(core), name))[
        :MOST_FUNCTIONS
    ]


def _counts(counts: Counts, core: Core) -> dict[str, float]:
    return {**vars(counts), "added_ns": counts.added_ns(core)}


def with_memory(figures: CaseFigures, added_ns: tuple[float, float, float]) -> CaseFigures:
    """Return figures whose throughput has the added time in every transaction.

    The largest throughput has the smallest addition, as each seed has its own.
    """
    name = "throughput_tps"
    low, high = figures.spread[name]
    median, least, most = added_ns

    def slower(throughput: float, added: float) -> float:
        return 1 / (1 / throughput + added / 1e9)

    return replace(
        figures,
        median={**figures.median, name: slower(figures.median[name], median)},
        spread={**figures.spread, name: (slower(low, most), slower(high, least))},
    )
