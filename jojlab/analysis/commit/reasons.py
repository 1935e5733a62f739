"""Why did the filesystem have to commit? Bytes of its journal and metadata by cause and reason.

A reason is the changes to files that a commit carried (`reason` in schema/requests.toml). Bytes
that carry none, such as tables that are brought up to date in place, are not here.
"""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.rows.name_families import family
from jojlab.analysis.rows.sums import requests_and_bytes
from jojlab.foundation.lazy import ibis


@dataclass(frozen=True)
class ReasonShare:
    """One reason: `requests` and `bytes` over all commits of a case."""

    part: str
    block_type: str
    cause: str
    reason: str
    requests: int
    bytes: int

    @property
    def changes(self) -> str:
        """The changes; without the file's name where the cause has named just that file."""
        file, _, words = self.reason.partition(": ")
        only = "; " not in self.reason and self.cause.endswith(f" of {file}")
        return words if only and words else self.reason


def reason_rows(pieces: ibis.Table) -> ibis.Table:
    """Return the shares of all cases, with case_id, dearest first.

    `pieces` are those of a bill (billed.billed_pieces), with their causes.
    """
    rows = pieces.filter(
        pieces.reason.notnull(), pieces.block_type.isin(["fs-journal", "fs-metadata"])
    )
    rows = rows.mutate(reason=family(rows.reason))
    key = ("case_id", "part", "block_type", "cause", "reason")
    sums = requests_and_bytes(rows, *key)
    return sums.order_by("case_id", "part", "block_type", ibis.desc("bytes"), *key[3:])
