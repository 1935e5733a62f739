"""What did ext4's journal hold copies of, and whom did shared requests serve?"""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.rows.sums import requests_and_bytes
from jojlab.foundation.lazy import ibis


@dataclass(frozen=True)
class HomeShare:
    """Bytes of journal copies, over all commits of a case, by what is copied (page_runs.home)."""

    part: str
    home: str
    bytes: int


@dataclass(frozen=True)
class AskersShare:
    """Requests that served several calls at once, over all commits of a case, by whose these were
    (requests.askers).
    """

    part: str
    block_type: str
    askers: str
    requests: int
    bytes: int


def home_rows(pieces: ibis.Table) -> ibis.Table:
    """Return the shares of all cases, with case_id, dearest first.

    `pieces` are those of a bill (billed.billed_pieces).
    """
    rows = pieces.filter(pieces.home.notnull())
    return (
        rows.group_by("case_id", "part", "home")
        .agg(bytes=rows["bytes"].sum().cast("int64"))
        .order_by("case_id", "part", ibis.desc("bytes"), "home")
    )


def askers_rows(pieces: ibis.Table) -> ibis.Table:
    """Return the shares of all cases, with case_id, dearest first; `pieces` as in home_rows."""
    rows = pieces.filter(pieces.askers.notnull())
    key = ("case_id", "part", "block_type", "askers")
    sums = requests_and_bytes(rows, *key)
    return sums.order_by("case_id", "part", ibis.desc("bytes"), *key[2:])
