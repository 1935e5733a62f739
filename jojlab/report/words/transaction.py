"""Names a transaction: SQLite's ends with COMMIT; in a file workload it is one operation.

Gets the results of jojlab/analysis; returns text.
"""

from __future__ import annotations

from collections.abc import Iterable

from jojlab.analysis.run.summary import CaseSummary


def has_commit(cases: Iterable[CaseSummary]) -> bool:
    """Whether SQLite is among what the cases ran; imported traces and replays do not say."""
    return any("journal_mode" in case.case for case in cases)


def name(cases: Iterable[CaseSummary]) -> str:
    """Return what the cases' transactions are, as it stands after "one"."""
    return "COMMIT" if has_commit(cases) else "operation"


def latency(cases: Iterable[CaseSummary]) -> str:
    """Return what interval a latency covers."""
    if has_commit(cases):
        return "from BEGIN to the return of COMMIT, with its checkpoint"
    return "of one operation with its sync"
