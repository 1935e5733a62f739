"""The runs that show what a program promises after an error: the case as it is, whose syncs are
counted, and then one run for each error that is planted beneath it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from jojlab.analysis.run.sync_needs import site_calls
from jojlab.campaign.sync_trials import CaseTrial, runs_program, seen_sites
from jojlab.experiment.cases import Case
from jojlab.foundation.errors import UseError
from jojlab.trace.power_cuts import FaultKind, PowerCuts

# What is free when the program begins. Of a step that it does not fill the answer says so.
_FREE_KIB = (4, 16, 64, 256, 1024)
# Of these a program's keeper makes one in its place (agent/src/workload/program/sync_watch.rs).
_MAY_FAIL = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync")


@dataclass(frozen=True)
class FaultTrial(CaseTrial):
    """A case beneath which an error is planted; `name` is that of the sync, or what is free."""

    kind: FaultKind
    name: str


def refuse_without_program(case: Case, where: str) -> None:
    """Raise UseError for a case beneath which no error can be planted."""
    if not runs_program(case):
        raise UseError(
            f"{where}: --faults: no error is planted beneath {case.settings['workload']}",
            "it is for workload = program: --program, or docs/own-engine.md",
        )


def fault_trials(
    case: Case, answers: Sequence[PowerCuts], kinds: Collection[FaultKind]
) -> Iterator[FaultTrial]:
    """Yield the case with each error: of each of its sync sites the call in the middle fails."""
    found: list[tuple[FaultKind, str, dict[str, str | int]]] = []
    if "sync-error" in kinds:
        for site in seen_sites(answers):
            if not site.is_fixed and site.call in _MAY_FAIL:
                name = f"{site.name} {(site_calls(answers, site.name) + 1) // 2}"
                found.append(("sync-error", name, {"failed_sync": name}))
    if "no-space" in kinds:
        for kib in _FREE_KIB:
            found.append(("no-space", f"{kib} KiB free", {"free_kib": kib}))
    for kind, name, settings in found:
        trial = replace(
            case, case_id=f"{case.case_id}: {name}", settings={**case.settings, **settings}
        )
        yield FaultTrial(case, trial, kind, name)


def untried_sites(answers: Sequence[PowerCuts]) -> list[str]:
    """Return the sites of a case whose syncs cannot be made to fail."""
    sites = (it for it in seen_sites(answers) if it.is_fixed or it.call not in _MAY_FAIL)
    return [it.name for it in sites]
