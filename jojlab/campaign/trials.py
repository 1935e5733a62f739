"""The runs that show which syncs a case needs, and what its program promises after an error: the
case as it is, whose syncs are counted, and then one run for each site of its syncs, in which these
do nothing, or for each error that is planted beneath it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jojlab.analysis.run.trials import site_calls
from jojlab.experiment.cases import Case, impossible
from jojlab.foundation.errors import UseError
from jojlab.model.field import Settings
from jojlab.model.fields import BY_NAME
from jojlab.model.workload import FAULTS
from jojlab.model.workloads import with_group, workload_of
from jojlab.trace.power_cuts import FaultKind, PowerCuts, SyncSite

# Of a program any site that was seen; of SQLite in the agent those that the field names.
_PROGRAM_FIELD, _SQLITE_FIELD = "omitted_sync", "dropped_sync"
# Of a program and of SQLite any site that was seen.
_FAULT_FIELD = "failed_sync"
_NONE = "none"
# What is free when the program or the first transaction begins. Of a step that it does not fill the
# answer says so.
_FREE_KIB = (4, 16, 64, 256, 1024)
# Of these the agent makes one in a program's place (agent/src/workload/program/sync_watch.rs).
_MAY_FAIL = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync")


@dataclass(frozen=True)
class CaseTrial:
    """A case that is like another but for one thing."""

    base: Case
    case: Case


@dataclass(frozen=True)
class SyncTrial(CaseTrial):
    """A case of which the syncs of one site are left out."""

    site: str


@dataclass(frozen=True)
class FaultTrial(CaseTrial):
    """A case beneath which an error is planted; `name` is that of the sync, or what is free."""

    kind: FaultKind
    name: str


def runs_program(case: Case) -> bool:
    """Return whether the sites of a case are those that its program was seen to have."""
    return _PROGRAM_FIELD in case.settings


def baseline(case: Case, where: str, option: str = "--without-sync") -> Case:
    """Return a case whose syncs are counted and none left out or failed, as the option needs it.

    Raises UseError for a case for which the option is not, and where it has such a sync already.
    """
    if option == "--faults":
        return _fault_baseline(case, where)
    field = _field(case)
    if not field:
        raise UseError(
            f"{where}: {option}: of {case.settings['workload']} no sync can be left out",
            "it is for workload = program and those of SQLite",
        )
    if case.settings[field] not in ("", _NONE):
        raise UseError(
            f"{where}: {field} = {case.settings[field]} leaves a sync out already",
            f"drop {field}, or drop {option}",
        )
    return replace(case, settings={**case.settings, field: _NONE})


def sync_trials(case: Case, answers: Sequence[PowerCuts]) -> Iterator[SyncTrial]:
    """Yield the case without each of its sites, those of its answers where they are a program's."""
    field = _field(case)
    sites: Sequence[str] = [name for name in BY_NAME[field].choices if name != _NONE]
    if runs_program(case):
        sites = [it.name for it in seen_sites(answers) if not it.is_fixed]
    for site in sites:
        own = {**case.settings, field: site}
        trial = replace(case, case_id=f"{case.case_id} without {site}", settings=own)
        yield SyncTrial(case, trial, site)


def _fault_baseline(case: Case, where: str) -> Case:
    workload = workload_of(case.settings)
    if not workload.has(FAULTS):
        raise UseError(
            f"{where}: --faults: no error is planted beneath {workload.name}",
            f"it is for workload = {', '.join(with_group(FAULTS))}",
        )
    for field in ("free_kib", _FAULT_FIELD):
        if (value := case.settings[field]) not in (0, "", _NONE):
            raise UseError(
                f"{where}: {field} = {value} plants an error already",
                f"drop {field}, or drop --faults",
            )
    whole = replace(case, settings={**case.settings, _FAULT_FIELD: _NONE})
    if reason := workload.refusal(whole.settings):
        raise UseError(f"{where}: --faults: {reason}", "change the field, or drop --faults")
    return whole


def fault_trials(
    case: Case, answers: Sequence[PowerCuts], kinds: Collection[FaultKind]
) -> Iterator[FaultTrial]:
    """Yield the case with each error that can be planted beneath it: of each of its sync sites the
    call in the middle fails.
    """
    found: list[tuple[FaultKind, str, dict[str, str | int]]] = []
    if "sync-error" in kinds:
        for site in seen_sites(answers):
            if not site.is_fixed and site.call in _MAY_FAIL:
                name = f"{site.name} {(site_calls(answers, site.name) + 1) // 2}"
                found.append(("sync-error", name, {_FAULT_FIELD: name}))
    if "no-space" in kinds:
        for kib in _FREE_KIB:
            found.append(("no-space", f"{kib} KiB free", {"free_kib": kib}))
    for kind, name, settings in found:
        trial = replace(
            case, case_id=f"{case.case_id}: {name}", settings={**case.settings, **settings}
        )
        if not impossible(trial.settings):
            yield FaultTrial(case, trial, kind, name)


# One of each kind, of which it is the same whether it can be planted as of the others.
_EXAMPLES: Mapping[FaultKind, Settings] = {
    "sync-error": {_FAULT_FIELD: "fsync ./ 1"},
    "no-space": {"free_kib": _FREE_KIB[0]},
}


def fault_refusals(settings: Settings, kinds: Iterable[FaultKind]) -> list[str]:
    """Return why errors of these kinds cannot be planted beneath a case, of those that cannot."""
    reasons = (impossible({**settings, **_EXAMPLES[kind]}) for kind in kinds)
    return [reason for reason in reasons if reason]


def fault_exclusion(case: Case, kinds: Collection[FaultKind]) -> str:
    """Return why none of these errors can be planted beneath a case; empty where one can, where
    none is asked for, or where `baseline` says why not.
    """
    if not kinds or not workload_of(case.settings).has(FAULTS):
        return ""
    reasons = fault_refusals(case.settings, kinds)
    return "; ".join(reasons) if len(reasons) == len(kinds) else ""


def untried_sites(answers: Sequence[PowerCuts]) -> list[str]:
    """Return the sites of a case whose syncs cannot be made to fail."""
    sites = (it for it in seen_sites(answers) if it.is_fixed or it.call not in _MAY_FAIL)
    return [it.name for it in sites]


def seen_sites(answers: Sequence[PowerCuts]) -> list[SyncSite]:
    """Return the sites of the syncs that were seen, each once, those of the most calls first."""
    found = {it.name: it for answer in answers for it in answer.sync_sites}
    return sorted(found.values(), key=lambda site: -site_calls(answers, site.name))


def _field(case: Case) -> str:
    return next((name for name in (_PROGRAM_FIELD, _SQLITE_FIELD) if name in case.settings), "")
