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
from jojlab.trace.power_cuts import PowerCuts

# Of a program any site that was seen; of SQLite in the agent those that the field names.
_PROGRAM_FIELD, _SQLITE_FIELD = "omitted_sync", "dropped_sync"
_NONE = "none"


@dataclass(frozen=True)
class SyncTrial:
    """A case of which the syncs of one site are left out."""

    base: Case
    site: str
    case: Case


def runs_program(case: Case) -> bool:
    """Return whether the sites of a case are those that its program was seen to have."""
    return _PROGRAM_FIELD in case.settings


def baseline(case: Case, where: str) -> Case:
    """Return a case whose syncs are counted and none left out.

    Raises UseError for a case whose syncs cannot be left out, and where one is already.
    """
    field = _field(case)
    if not field:
        raise UseError(
            f"{where}: --without-sync: of {case.settings['workload']} no sync can be left out",
            "it is for workload = program and those of SQLite",
        )
    if case.settings[field] not in ("", _NONE):
        raise UseError(
            f"{where}: {field} = {case.settings[field]} leaves a sync out already",
            f"drop {field}, or drop --without-sync",
        )
    return replace(case, settings={**case.settings, field: _NONE})


def trials(case: Case, answers: Sequence[PowerCuts]) -> Iterator[SyncTrial]:
    """Yield the case without each of its sites, those of its answers where they are a program's."""
    field = _field(case)
    sites: Sequence[str] = [name for name in BY_NAME[field].choices if name != _NONE]
    if runs_program(case):
        seen = [it for answer in answers for it in answer.sync_sites if not it.is_fixed]
        found = dict.fromkeys(it.name for it in seen)
        sites = sorted(found, key=lambda site: -site_calls(answers, site))
    for site in sites:
        own = {**case.settings, field: site}
        trial = replace(case, case_id=f"{case.case_id} without {site}", settings=own)
        yield SyncTrial(case, site, trial)


def _field(case: Case) -> str:
    return next((name for name in (_PROGRAM_FIELD, _SQLITE_FIELD) if name in case.settings), "")
