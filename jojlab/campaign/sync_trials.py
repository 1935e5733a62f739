"""The runs that show which syncs a case needs: the case as it is, whose syncs are counted, and then
one run for each site of its syncs, in which these do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jojlab.analysis.run.sync_needs import site_calls
from jojlab.experiment.cases import Case
from jojlab.foundation.errors import UseError
from jojlab.model.fields import BY_NAME
from jojlab.trace.power_cuts import PowerCuts, SyncSite

# Of a program any site that was seen; of SQLite in the agent those that the field names.
_PROGRAM_FIELD, _SQLITE_FIELD = "omitted_sync", "dropped_sync"
_NONE = "none"


@dataclass(frozen=True)
class CaseTrial:
    """A case that is like another but for one thing."""

    base: Case
    case: Case


@dataclass(frozen=True)
class SyncTrial(CaseTrial):
    """A case of which the syncs of one site are left out."""

    site: str


def runs_program(case: Case) -> bool:
    """Return whether the sites of a case are those that its program was seen to have."""
    return _PROGRAM_FIELD in case.settings


def baseline(case: Case, where: str, option: str = "--without-sync") -> Case:
    """Return a case whose syncs are counted and none left out, as the option needs it.

    Raises UseError for a case whose syncs cannot be left out, and where one is already.
    """
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


def trials(case: Case, answers: Sequence[PowerCuts]) -> Iterator[SyncTrial]:
    """Yield the case without each of its sites, those of its answers where they are a program's."""
    field = _field(case)
    sites: Sequence[str] = [name for name in BY_NAME[field].choices if name != _NONE]
    if runs_program(case):
        sites = [it.name for it in seen_sites(answers) if not it.is_fixed]
    for site in sites:
        own = {**case.settings, field: site}
        trial = replace(case, case_id=f"{case.case_id} without {site}", settings=own)
        yield SyncTrial(case, trial, site)


def seen_sites(answers: Sequence[PowerCuts]) -> list[SyncSite]:
    """Return the sites of a program's syncs, each once, those of the most calls first."""
    found = {it.name: it for answer in answers for it in answer.sync_sites}
    return sorted(found.values(), key=lambda site: -site_calls(answers, site.name))


def _field(case: Case) -> str:
    return next((name for name in (_PROGRAM_FIELD, _SQLITE_FIELD) if name in case.settings), "")
