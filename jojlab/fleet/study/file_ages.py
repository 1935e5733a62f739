"""How long do files live, by kind? Reads the counts of the question `lives`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jojlab.fleet.study.dataset import Row

# The power of two that is next above a second, in milliseconds.
_SECOND_MS = 1024


@dataclass(frozen=True)
class FileAges:
    """Files of one kind. `forgotten` are created ones whose deletion would not have been counted.
    Of those that are gone and whose creation was seen: how many lived for less than 1.024 s, and
    the power of two above the age of the middle one, in milliseconds.
    """

    file_kind: str
    created: int
    deleted: int
    forgotten: int
    of_known_age: int
    below_a_second: int
    median_below_ms: int | None


def file_ages(lives: Sequence[Row]) -> list[FileAges]:
    """Return every kind, those of which most files were created first."""
    found = []
    for kind in dict.fromkeys(row["file_kind"] for row in lives):
        own = [row for row in lives if row["file_kind"] == kind]
        deleted = [row for row in own if row["event"] == "deleted"]
        known = sorted(
            (row["lived_below_ms"], row["files"])
            for row in deleted
            if row["lived_below_ms"] is not None
        )
        count = sum(files for _, files in known)
        found.append(
            FileAges(
                kind,
                sum(row["files"] for row in own if row["event"] == "created"),
                sum(row["files"] for row in deleted),
                sum(row["files"] for row in own if row["event"] == "forgotten"),
                count,
                sum(files for below, files in known if below <= _SECOND_MS),
                _middle(known, count),
            )
        )
    return sorted(found, key=lambda each: (-each.created, each.file_kind))


def _middle(known: Sequence[tuple[int, int]], count: int) -> int | None:
    seen = 0
    for below, files in known:
        seen += files
        if 2 * seen >= count:
            return below
    return None
