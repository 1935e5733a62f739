"""The rows of a simulated device's day: its commits, its requests and its files.

The number of transactions over several databases is given; the number over one, their times, apps
and settings are drawn by the figures of phones.py. Requests and files follow from the commits:
writes have the shares of Fig. 2 of ATC'13; reads, flushes and the lives of other files are
assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jojlab.fleet.simulation import phones
from jojlab.fleet.simulation.phones import APPS

Ints = NDArray[np.int64]
MODES = ("delete", "truncate", "persist", "wal")
_PAGE_BYTES = 4096
_HOUR_NS = 3_600_000_000_000
# A journal's header, and what stands beside each page in it and in a WAL (SQLite's file format).
_HEADER_BYTES = 512
_BESIDE_PAGE_BYTES = {"wal": 24}
_BESIDE_JOURNAL_PAGE_BYTES = 8
_HEX = np.array(list("0123456789ABCDEF"))


@dataclass(frozen=True)
class DayCommits:
    """Columns of a day's commits, a value for each; times are those of the day, from midnight.

    `app` and `mode` are places in APPS and MODES; a word is the place of a text in `databases`.
    """

    end_ns: Ints
    duration_ns: Ints
    app: Ints
    mode: Ints
    database: Ints
    databases: Sequence[str]
    joined: NDArray[np.bool_]
    super_journal: Sequence[str | None]
    database_count: Ints
    pages: Ints

    def __len__(self) -> int:
        return len(self.end_ns)

    def bytes_of(self) -> dict[str, Ints]:
        """Return the bytes that commits wrote, by the column that they stand in."""
        beside = np.array(
            [_BESIDE_PAGE_BYTES.get(mode, _BESIDE_JOURNAL_PAGE_BYTES) for mode in MODES]
        )
        is_wal = self.mode == MODES.index("wal")
        data = np.where(is_wal, 0, self.pages * _PAGE_BYTES)
        log = self.pages * (_PAGE_BYTES + beside[self.mode])
        log = log + np.where(is_wal, 0, _HEADER_BYTES * self.database_count)
        metadata = np.array([phones.FILESYSTEM_BYTES[mode] for mode in MODES])[self.mode]
        blocks = -(-log // _PAGE_BYTES) * _PAGE_BYTES
        return {
            "written_bytes": data + log,
            "database_bytes": data,
            "journal_bytes": blocks,
            "filesystem_bytes": metadata * self.database_count,
        }


def day_commits(joined: int, generator: np.random.Generator) -> DayCommits:
    """Return the commits of a day with `joined` multi-file transactions."""
    middle = np.log(phones.COMMITS) - phones.SPREAD**2 / 2
    single = int(generator.lognormal(middle, phones.SPREAD))
    count = single + joined
    names, places = _databases()
    is_joined = np.zeros(count, bool)
    is_joined[single:] = True
    app = np.concatenate(
        [
            _draw([each.weight for each in APPS], single, generator),
            _draw([each.multi_file_weight for each in APPS], joined, generator),
        ]
    )
    own = np.array([len(each.databases) for each in APPS])[app]
    database = np.array(places)[app] + generator.integers(0, own)
    first = np.array([names.index((each.joined or each.databases)[0]) for each in APPS])[app]
    database = np.where(is_joined, first, database)
    wal, rest = phones.WAL_SHARE, (1 - phones.WAL_SHARE) / 3
    mode = generator.choice(len(MODES), count, p=(rest, rest, rest, wal))
    # Of several databases there is a super-journal only with rollback journals.
    mode = np.where(is_joined, generator.integers(0, len(MODES) - 1, count), mode)
    joins = np.array([len(each.joined) or 1 for each in APPS])[app]
    databases = np.where(is_joined, joins, 1)
    usual = np.array([phones.COMMIT_NS[each] for each in MODES])[mode]
    usual = np.where(is_joined, usual * phones.MULTI_FILE_TIMES, usual)
    duration = usual * generator.lognormal(0, phones.SPREAD, count)
    hours = _draw(phones.HOURS, count, generator)
    end = hours * _HOUR_NS + generator.integers(0, _HOUR_NS, count)
    order = np.argsort(end, kind="stable")
    return DayCommits(
        end[order],
        duration.astype(np.int64)[order],
        app[order],
        mode[order],
        database[order],
        names,
        is_joined[order],
        _super_journals([names[place] for place in database[order]], is_joined[order], generator),
        databases[order],
        (databases + generator.geometric(1 / phones.PAGES, count) - 1)[order],
    )


def _databases() -> tuple[list[str], list[int]]:
    """Return all databases that commits are named after, and where those of each app begin."""
    names: list[str] = []
    places = []
    for app in APPS:
        places.append(len(names))
        names += app.databases
    return names, places


def _draw(weights: Sequence[float], count: int, generator: np.random.Generator) -> Ints:
    shares = np.array(weights, float)
    return generator.choice(len(shares), count, p=shares / shares.sum())


def _super_journals(
    databases: Sequence[str], joined: NDArray[np.bool_], generator: np.random.Generator
) -> list[str | None]:
    """Return the names that SQLite gives: "%s-mj%06X9%02X" (vdbeaux.c), each once."""
    digits: Any = _HEX[generator.integers(0, 16, (int(joined.sum()), 8))]
    random = iter(digits)
    return [
        f"{name}-mj{''.join(drawn[:6])}9{''.join(drawn[6:])}"
        if is_joined and (drawn := next(random)) is not None
        else None
        for name, is_joined in zip(databases, joined, strict=True)
    ]


_TEN_MINUTES_NS = 600_000_000_000
INTERVALS = 144


class _Kind(NamedTuple):
    """One sort of request: its words, and its share of the writes or of the reads."""

    file_kind: str
    block_type: str
    operation: str
    sync: bool
    share: float


_DATA = 1 - phones.FS_JOURNAL - phones.FS_METADATA
_SQLITE = _DATA * phones.SQLITE_OF_DATA
_SQLITE_SYNC = phones.SYNC - phones.FS_JOURNAL  # a commit of the filesystem is synchronous
_SQLITE_LATER = _SQLITE - _SQLITE_SYNC
# Of SQLite's data: which file it is.
_FILES = {"db": 0.4, "wal": 0.35, "db-journal": 0.25}
_WRITES = (
    _Kind("none", "fs-journal", "write", True, phones.FS_JOURNAL),
    _Kind("none", "fs-metadata", "write", False, phones.FS_METADATA),
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
    per_place = np.bincount(place, minlength=INTERVALS * len(APPS))
    writes = per_place * phones.REQUESTS_A_COMMIT
    reads = generator.poisson(writes * phones.READS_A_WRITE)
    counts = np.concatenate(
        [
            generator.multinomial(writes, _shares(_WRITES)),
            generator.multinomial(reads, _shares(_READS)),
            per_place[:, None],
        ],
        axis=1,
    )
    place, kind = np.nonzero(counts)
    requests = counts[place, kind]
    moves = np.array([each.operation != "flush" for each in KINDS])[kind]
    random = generator.binomial(requests, phones.RANDOM)
    small = generator.binomial(requests, phones.SMALL) * moves
    large = (requests - small) * moves
    return DayRequests(
        place // len(APPS),
        place % len(APPS),
        kind,
        requests,
        small * phones.SMALL_BYTES + large * phones.LARGE_BYTES,
        random * moves,
        small,
    )


def _shares(kinds: tuple[_Kind, ...]) -> NDArray[np.float64]:
    whole = sum(each.share for each in kinds)
    return np.array([each.share / whole for each in kinds])


Row = dict[str, Any]
_ENDING = {"delete": "-journal", "truncate": "-journal", "persist": "-journal", "wal": "-wal"}
_KIND = {"-journal": "db-journal", "-wal": "wal"}
# Of files that are no journals, a day and app: how many, how long they live, how large they are.
_OTHERS = (("other", 60, 1 << 22, 1 << 14), ("resource", 25, 1 << 30, 1 << 16))


def file_sums(commits: DayCommits, places: NDArray[np.int64]) -> list[Row]:
    """Return the rows of file_sums for the commits at the places `places`."""
    written = commits.bytes_of()
    sums: Counter[tuple[str, str, str]] = Counter()
    pairs = commits.database[places] * len(MODES) + commits.mode[places]
    for pair in np.unique(pairs):
        chosen = places[pairs == pair]
        name = commits.databases[pair // len(MODES)]
        ending = _ENDING[MODES[pair % len(MODES)]]
        process = APPS[int(commits.app[chosen[0]])].process
        sums[name, "db", process] += int(written["database_bytes"][chosen].sum())
        sums[name + ending, _KIND[ending], process] += int(written["journal_bytes"][chosen].sum())
    return [
        {"path": path, "file_kind": kind, "process": process, "files": 1, "write_bytes": count}
        for (path, kind, process), count in sorted(sums.items())
        if count
    ]


def file_lives(
    commits: DayCommits, places: NDArray[np.int64], share: float, generator: np.random.Generator
) -> list[Row]:
    """Return the rows of file_lives for the same commits, in a segment of that share of a day."""
    counts: Counter[tuple[str, str, str, int | None, int | None]] = Counter()
    is_delete = commits.mode[places] == MODES.index("delete")
    sizes = commits.bytes_of()["journal_bytes"]
    for chosen, kind in (
        (places[is_delete], "db-journal"),
        (places[commits.joined[places]], "super-journal"),
    ):
        for place in chosen:
            process = APPS[int(commits.app[place])].process
            lived = _next_power_of_two(int(commits.duration_ns[place]) / 1e6)
            size = _next_power_of_two(512 if kind == "super-journal" else int(sizes[place]))
            counts["created", process, kind, None, None] += 1
            counts["deleted", process, kind, lived, size] += 1
    for app in APPS:
        for kind, files, lived_ms, size_bytes in _OTHERS:
            count = int(generator.poisson(files * share))
            gone = int(generator.binomial(count, 0.7))
            for age in generator.lognormal(np.log(lived_ms), 2.5, gone):
                size = _next_power_of_two(float(generator.lognormal(np.log(size_bytes), 1)))
                counts["deleted", app.process, kind, _next_power_of_two(age), size] += 1
            if count:
                counts["created", app.process, kind, None, None] += count
    return [
        {
            "event": event,
            "process": process,
            "file_kind": kind,
            "lived_below_ms": lived,
            "size_below_bytes": size,
            "files": files,
        }
        for (event, process, kind, lived, size), files in sorted(counts.items(), key=repr)
    ]


def _next_power_of_two(value: float) -> int:
    """Return the power of two that is next above; 1 for less than one."""
    return 1 << int(value).bit_length()
