"""The requests of a made device's day: how many of each kind, in each ten minutes, by which app.

The writes have the shares of Fig. 2 of ATC'13; what reads and flushes there are is assumed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jojlab.fleet.simulation import published
from jojlab.fleet.simulation.apps import APPS
from jojlab.fleet.simulation.commit_rows import DayCommits

Ints = NDArray[np.int64]
_TEN_MINUTES_NS = 600_000_000_000
INTERVALS = 144


class _Kind(NamedTuple):
    """One sort of request: its words, and its share of the writes or of the reads."""

    file_kind: str
    block_type: str
    operation: str
    sync: bool
    share: float


_DATA = 1 - published.FS_JOURNAL - published.FS_METADATA
_SQLITE = _DATA * published.SQLITE_OF_DATA
_SQLITE_SYNC = published.SYNC - published.FS_JOURNAL  # a commit of the filesystem is synchronous
_SQLITE_LATER = _SQLITE - _SQLITE_SYNC
# Of SQLite's data: which file it is.
_FILES = {"db": 0.4, "wal": 0.35, "db-journal": 0.25}
_WRITES = (
    _Kind("none", "fs-journal", "write", True, published.FS_JOURNAL),
    _Kind("none", "fs-metadata", "write", False, published.FS_METADATA),
    *(_Kind(kind, "data", "write", True, _SQLITE_SYNC * part) for kind, part in _FILES.items()),
    _Kind("db", "data", "write", False, _SQLITE_LATER),
    _Kind("multimedia", "data", "write", False, (_DATA - _SQLITE) / 2),
    _Kind("other", "data", "write", False, (_DATA - _SQLITE) / 2),
)
_READS = (
    _Kind("db", "data", "read", False, 0.35),
    _Kind("executable", "data", "read", False, 0.35),
    _Kind("resource", "data", "read", False, 0.2),
    _Kind("none", "fs-metadata", "read", False, 0.1),
)
KINDS = (*_WRITES, *_READS, _Kind("none", "flush", "flush", True, 1.0))


class DayRequests(NamedTuple):
    """Rows of io_sums: the ten minutes (0 .. 143), places in APPS and KINDS, and sums."""

    interval: Ints
    app: Ints
    kind: Ints
    requests: Ints
    moved_bytes: Ints
    random_requests: Ints
    small_requests: Ints


def day_requests(commits: DayCommits, generator: np.random.Generator) -> DayRequests:
    """Return the requests that a day with these commits has."""
    place = commits.end_ns // _TEN_MINUTES_NS * len(APPS) + commits.app
    made = np.bincount(place, minlength=INTERVALS * len(APPS))
    writes = made * published.REQUESTS_A_COMMIT
    reads = generator.poisson(writes * published.READS_A_WRITE)
    counts = np.concatenate(
        [
            generator.multinomial(writes, _shares(_WRITES)),
            generator.multinomial(reads, _shares(_READS)),
            made[:, None],
        ],
        axis=1,
    )
    place, kind = np.nonzero(counts)
    requests = counts[place, kind]
    moves = np.array([each.operation != "flush" for each in KINDS])[kind]
    random = generator.binomial(requests, published.RANDOM)
    small = generator.binomial(requests, published.SMALL) * moves
    large = (requests - small) * moves
    return DayRequests(
        place // len(APPS),
        place % len(APPS),
        kind,
        requests,
        small * published.SMALL_BYTES + large * published.LARGE_BYTES,
        random * moves,
        small,
    )


def _shares(kinds: tuple[_Kind, ...]) -> NDArray[np.float64]:
    whole = sum(each.share for each in kinds)
    return np.array([each.share / whole for each in kinds])
