"""Into which few classes does a bill fall? What a chart can show of it, and the order to show."""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.commit.bill import Bill
from jojlab.model.figures import CAUSED

# In the order of the story: SQLite's files, then the filesystem, then what nobody knows.
CLASSES = (
    "database",
    "rollback journal",
    "WAL",
    "other data",
    "filesystem journal",
    "filesystem metadata",
    "unknown",
    "flush",
)

_DATA = {
    "db": "database",
    "db-journal": "rollback journal",
    "super-journal": "rollback journal",
    "wal": "WAL",
    "shm": "WAL",
}
_OTHER = {
    "fs-journal": "filesystem journal",
    "fs-metadata": "filesystem metadata",
    "flush": "flush",
}


@dataclass(frozen=True)
class ClassShare:
    """One class in one part of a bill, for one commit."""

    part: str
    name: str
    requests: float
    bytes: float


def class_of(block_type: str, file_kind: str) -> str:
    """Return the class of a bill's row or of a page run."""
    if block_type == "data":
        return _DATA.get(file_kind, "other data")
    return _OTHER.get(block_type, "unknown")


def class_shares(bill: Bill) -> tuple[ClassShare, ...]:
    """Add the rows of a bill up by part and class, in the order of CLASSES."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for row in bill.rows:
        key = row.part, class_of(row.block_type, row.file_kind)
        requests, length = sums.get(key, (0, 0))
        sums[key] = requests + row.requests, length + row.bytes
    return tuple(
        ClassShare(
            part,
            name,
            bill.per_commit(sums[part, name][0]),
            bill.per_commit(sums[part, name][1]),
        )
        for part in CAUSED
        for name in CLASSES
        if (part, name) in sums
    )


def caused_shares(bill: Bill) -> tuple[ClassShare, ...]:
    """Return the classes of all that commits cause, dearest first."""
    sums: dict[str, ClassShare] = {}
    for share in class_shares(bill):
        known = sums.get(share.name, ClassShare("", share.name, 0, 0))
        sums[share.name] = ClassShare(
            "", share.name, known.requests + share.requests, known.bytes + share.bytes
        )
    return tuple(sorted(sums.values(), key=lambda share: (-share.bytes, -share.requests)))
