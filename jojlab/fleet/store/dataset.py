"""The dataset of a fleet: which units of segments it consists of, and how a checked segment joins
it.

TABLE/day=DAY/device=DEVICE/UNIT.parquet has rows of one table of schema/fleet. A unit is one
segment, named by its SHA-256, or `compacted-...`: the rows of several. The file of `segments` is
put last: a unit whose file of `segments` is not there was never acknowledged, and does not count.

While segments are compacted they are there twice. A compacted unit names the segments that it
holds, and is there as a whole or not at all; a unit counts unless others hold all of it. So each
segment counts once at any moment, and after any kill: `live_units` is the only way to list files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.segment import CheckedSegment
from jojlab.foundation.errors import DataError
from jojlab.foundation.lazy import pa, pq
from jojlab.trace.schema import FLEET_TABLES

SEGMENTS = "segments"

HOLDS = b"joj.holds"  # key of the metadata of a compacted file of `segments`: hashes, by spaces
_COMPACTED = "compacted-"
_KEY = re.compile(
    r"\w+/day=(?P<day>\d{4}-\d\d-\d\d)/device=(?P<device>[a-z0-9][a-z0-9-]{0,62})"
    r"/(?P<name>(?:compacted-)?[0-9a-f]{64})\.parquet"
)


@dataclass(frozen=True)
class Unit:
    """One unit of the dataset: a segment, or several that were compacted."""

    day: str
    device: str
    name: str

    @property
    def is_compacted(self) -> bool:
        """Return whether it holds several segments."""
        return self.name.startswith(_COMPACTED)

    def key(self, table: str) -> str:
        """Return the key of its rows of one table."""
        return f"{table}/day={self.day}/device={self.device}/{self.name}.parquet"


def unit_of(key: str) -> Unit | None:
    """Return whose file it is; None if the key is none of the dataset."""
    found = _KEY.fullmatch(key)
    return Unit(**found.groupdict()) if found else None


def compacted_name(segments: Iterable[str]) -> str:
    """Return the name of the unit that holds these segments: the same for the same."""
    return _COMPACTED + hashlib.sha256(" ".join(sorted(segments)).encode()).hexdigest()


# Takes a key of the store, and why what lies there cannot be read.
Complaint = Callable[[str, str], None]


def live_units(store: Store, complain: Complaint | None = None) -> list[Unit]:
    """Return the units that count, by day, device and name.

    A unit that cannot be read is passed over with a complaint; without `complain` it is an error.
    """
    partitions: dict[tuple[str, str], list[Unit]] = {}
    odd: list[str] = []
    for each in store.objects(SEGMENTS, odd):
        if unit := unit_of(each.key):
            partitions.setdefault((unit.day, unit.device), []).append(unit)
    if complain is not None:
        for key in sorted(odd):
            complain(key, "no regular file")
    return [
        unit
        for key in sorted(partitions)
        for unit in counted_units(store, partitions[key], complain)
    ]


def counted_units(
    store: Store, units: Collection[Unit], complain: Complaint | None = None
) -> list[Unit]:
    """Return those units that count, of all the units of one day and device."""
    by_name = sorted(units, key=lambda unit: unit.name)
    if len(units) == 1 or not any(unit.is_compacted for unit in units):
        return by_name
    held: dict[Unit, frozenset[str]] = {}
    for unit in by_name:
        try:
            held[unit] = segment_hashes(store, unit)
        except DataError as error:
            if complain is None:
                raise
            complain(unit.key(SEGMENTS), error.message)
    by_name = list(held)
    # Two compacted units that hold the same segments have the same name: they are one.
    return [
        unit for unit in by_name if not any(held[unit] < held[other] or (
            held[unit] == held[other] and other.is_compacted and not unit.is_compacted
        ) for other in by_name)
    ]  # fmt: skip


def is_known(store: Store, segment: Unit) -> bool:
    """Return whether the segment was stored before, by itself or in a compacted unit."""
    key = segment.key(SEGMENTS)
    folder, _, own_name = key.rpartition("/")
    names = store.names(folder)
    if own_name in names:
        return True
    units = (unit_of(f"{folder}/{name}") for name in names if name.startswith(_COMPACTED))
    return any(unit and segment.name in segment_hashes(store, unit) for unit in units)


def segment_hashes(store: Store, unit: Unit) -> frozenset[str]:
    """Return the hashes of the segments of a unit; none if a compacted one is gone again."""
    if not unit.is_compacted:
        return frozenset((unit.name,))
    try:
        return _compacted_hashes(store, unit)
    except FileNotFoundError:  # held by a larger one, and deleted since it was listed
        return frozenset()


@lru_cache(maxsize=4096)
def _compacted_hashes(store: Store, unit: Unit) -> frozenset[str]:
    path = store.path(unit.key(SEGMENTS))
    if not store.has(unit.key(SEGMENTS)):
        raise FileNotFoundError(path)
    try:
        metadata = pq.read_metadata(path, filesystem=store.filesystem).metadata or {}
        return frozenset(metadata[HOLDS].decode().split())
    except FileNotFoundError:
        raise
    except (KeyError, UnicodeError, OSError, pa.ArrowInvalid) as error:  # Thrift's are OSErrors
        raise DataError(f"{path}: says not what it holds: {error}", "restore the store") from error


def store_segment(
    store: Store, device: str, sha256: str, checked: CheckedSegment, folder: Path
) -> bool:
    """Put the tables in `folder` (of the spool) into the dataset; False if they were there.

    On return the segment is durable, also where a server that was killed had put it. A kill before
    that leaves tables without their file of `segments`, which do not count; sent again, the segment
    gets the same keys.
    """
    unit = Unit(checked.day, device, sha256)
    if is_known(store, unit):
        store.sync(unit.key(SEGMENTS))
        return False
    own, *rest = [(folder / f"{table}.parquet", unit.key(table)) for table in FLEET_TABLES]
    store.put(rest, [own])  # SEGMENTS is the first
    return True
