"""The commits of a made device's day, in order of time.

Gets how many there are of several databases; how many there are of one, when they happen, by which
app and with which settings is drawn by the figures of published.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jojlab.fleet.simulation import published
from jojlab.fleet.simulation.apps import APPS, App

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
        metadata = np.array([published.FILESYSTEM_BYTES[mode] for mode in MODES])[self.mode]
        blocks = -(-log // _PAGE_BYTES) * _PAGE_BYTES
        return {
            "written_bytes": data + log,
            "database_bytes": data,
            "journal_bytes": blocks,
            "filesystem_bytes": metadata * self.database_count,
        }


def day_commits(joined: int, generator: np.random.Generator) -> DayCommits:
    """Return the commits of a day with `joined` multi-file transactions."""
    middle = np.log(published.COMMITS) - published.SPREAD**2 / 2
    single = int(generator.lognormal(middle, published.SPREAD))
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
    first = np.array([names.index(_first(each)) for each in APPS])[app]
    database = np.where(is_joined, first, database)
    wal, rest = published.WAL_SHARE, (1 - published.WAL_SHARE) / 3
    mode = generator.choice(len(MODES), count, p=(rest, rest, rest, wal))
    # Of several databases there is a super-journal only with rollback journals.
    mode = np.where(is_joined, generator.integers(0, len(MODES) - 1, count), mode)
    joins = np.array([len(each.joined) or 1 for each in APPS])[app]
    databases = np.where(is_joined, joins, 1)
    usual = np.array([published.COMMIT_NS[each] for each in MODES])[mode]
    usual = np.where(is_joined, usual * published.MULTI_FILE_TIMES, usual)
    duration = usual * generator.lognormal(0, published.SPREAD, count)
    hours = _draw(published.HOURS, count, generator)
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
        (databases + generator.geometric(1 / published.PAGES, count) - 1)[order],
    )


def _first(app: App) -> str:
    return (app.joined or app.databases)[0]


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
