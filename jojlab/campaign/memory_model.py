"""The time that the memory of a core adds to an experiment's cases: each runs again with the model
of its caches and TLBs, which counts every part of the run.

A result of its own: the tables of the run are left as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from jojlab.campaign.jobs import JobRequest
from jojlab.experiment.cases import Case
from jojlab.experiment.plan import runs_by_wall_clock
from jojlab.foundation.errors import UseError
from jojlab.guest.memory_model import CORES, Core
from jojlab.lab.job import Job
from jojlab.lab.lab import JobProgress, Lab
from jojlab.lab.memory_run import modelled_job, read_modelled, with_added_time
from jojlab.lab.outcome import FailedJob, Outcome
from jojlab.model.architecture import X86_64
from jojlab.trace.memory_counts import CaseMemory, CountedPart, CountedRun, MemoryModel

# Functions of a part that are kept, those that the model adds most to.
MOST_FUNCTIONS = 12


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
    if runs_by_wall_clock(cases):
        raise UseError(
            "--memory-model: cases of emulated devices run by the clock on the wall",
            "drop --memory-model, or use a modelled device",
        )


def model_run(
    jobs: Sequence[JobRequest], lab: Lab, core: Core, tell: Callable[[str], None]
) -> MemoryModel:
    """Run every job with the model of a core; the plain ones are in the cache, or run too.

    `tell` hears which case is done. Raises what a job fails by.
    """
    plain: dict[int, Outcome] = {}
    for number, outcome in _run(lab, [each.job for each in jobs]):
        plain[number] = outcome
    modelled = [modelled_job(each.job, plain[n], core) for n, each in enumerate(jobs)]
    seeds: dict[str, dict[int, CountedRun]] = {
        case.case_id: {} for request in jobs for case, _ in request.answers
    }
    for done, (number, outcome) in enumerate(_run(lab, modelled), 1):
        answers = jobs[number].answers
        tell(f"[{done}/{len(jobs)}] {answers[0][0].case_id}, seed {answers[0][1]}")
        parts = read_modelled(plain[number], outcome)
        counts = {name: _costly(with_added_time(part, core)) for name, part in parts.items()}
        for case, seed in answers:
            seeds[case.case_id][seed] = counts
    cases = [
        CaseMemory(name, {str(seed): counts for seed, counts in sorted(own.items())})
        for name, own in seeds.items()
    ]
    return MemoryModel(core.name, core.title, list(core.sources), cases)


def _costly(part: CountedPart) -> CountedPart:
    """Return a part with those functions alone that the model adds most to, the first first."""
    order = sorted(part.functions.items(), key=lambda each: (-each[1].added_ns, each[0]))
    return CountedPart(part.all, part.buffers, dict(order[:MOST_FUNCTIONS]))


def _run(lab: Lab, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
    with contextlib.closing(lab.run(jobs, JobProgress())) as outcomes:
        for number, outcome in outcomes:
            if isinstance(outcome, FailedJob):
                raise outcome.error
            yield number, outcome
