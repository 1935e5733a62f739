"""Says in which of SQLite's regimes a case was measured: how far its files had grown.

Gets the results of jojlab/analysis; returns text.
"""

from __future__ import annotations

from jojlab.analysis.run.summary import CaseSummary

_MEANINGS = {
    "fresh": "fresh, new files that grow",
    "steady": "steady, files that do not grow",
    "reopened": "reopened, the connection is closed and opened around each burst",
}


def meaning(case: CaseSummary) -> str:
    """Return the regime of a case, explained; empty where it has none."""
    return _MEANINGS.get(str(case.case.get("regime", "")), "")
