"""Makes one unit of the many small ones of a day and device.

The unit that comes of it has all rows of all units that count there, and names the segments that it
holds. Its file of `segments` is put last: until then the old units count, from then on it alone
(dataset.py). What it holds is deleted some time later, so that readers that listed the old files
can finish. So a kill at any moment changes no row that a reader sees; and because it takes all
units of its day and device, of two that ran at once one holds what the other does.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jojlab.fleet.store.dataset import (
    HOLDS,
    SEGMENTS,
    Unit,
    compacted_name,
    counted_units,
    segment_hashes,
    unit_of,
)
from jojlab.fleet.store.objects import Store
from jojlab.foundation.errors import DataError
from jojlab.foundation.lazy import pa, pq
from jojlab.trace.schema import FLEET_TABLES, table_schema

# A day is compacted when it has so many units, and once more when it is over.
MANY_UNITS = 16
_DAY_IS_OVER = timedelta(days=2)
# Tables without their file of `segments` are of an upload that was broken off, or in progress.
_UNFINISHED_SECONDS = 86400.0
# A row group of a compacted file; of the many small ones that come, each has a dictionary.
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 64 << 20
_FOLDER = "compaction-"


@dataclass
class CompactionCounts:
    """The counts of a compaction."""

    units: int = 0  # that came of it
    segments: int = 0  # that they hold
    deleted_files: int = 0


def compact(
    store: Store,
    now_s: float,
    *,
    grace_s: float,
    all_days: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> CompactionCounts:
    """Compact what is due, or all days; delete what was held for `grace_s` seconds.

    Raises DataError, after all the rest is done, where files of a day and device cannot be read.
    """
    done = CompactionCounts()
    failed: list[str] = []
    store.empty_spool(f"{_FOLDER}*", now_s - _UNFINISHED_SECONDS)
    today = datetime.fromtimestamp(now_s, UTC)
    over = (today - _DAY_IS_OVER).strftime("%Y-%m-%d")
    changed_s: dict[Unit, float] = {}
    partitions: dict[tuple[str, str], list[Unit]] = {}
    for each in store.objects(SEGMENTS):
        if unit := unit_of(each.key):
            changed_s[unit] = each.changed_s
            partitions.setdefault((unit.day, unit.device), []).append(unit)
    for (day, device), units in sorted(partitions.items()):
        try:
            live = counted_units(store, units)
            done.deleted_files += _delete_compacted(store, units, now_s - grace_s, changed_s)
            if len(live) >= MANY_UNITS or (len(live) > 1 and (all_days or day <= over)):
                tell(f"{day} {device}")
                done.segments += _compact_units(store, live)
                done.units += 1
        except (OSError, ValueError, DataError) as error:  # Arrow's are OSError and ValueError
            failed.append(f"{day} {device}: {error}")
    done.deleted_files += _delete_unfinished(store, set(changed_s), now_s - _UNFINISHED_SECONDS)
    if failed:
        raise DataError(
            f"{len(failed)} days of devices cannot be compacted, such as {failed[0]}",
            "restore their files from a copy, or make room",
        )
    return done


def _compact_units(store: Store, units: list[Unit]) -> int:
    """Make one unit of these; return how many segments it holds."""
    held = sorted(frozenset[str]().union(*(segment_hashes(store, unit) for unit in units)))
    target = Unit(units[0].day, units[0].device, compacted_name(held))
    in_order = sorted(units, key=lambda unit: (_begin_ns(store, unit), unit.name))
    folder = store.spool / f"{_FOLDER}{uuid.uuid4().hex}"
    folder.mkdir()
    try:
        # Of `segments` the last: from then on, the unit counts.
        for table in (*FLEET_TABLES[1:], SEGMENTS):
            path = folder / f"{table}.parquet"
            metadata = {HOLDS: " ".join(held)} if table == SEGMENTS else {}
            rows = _merge(store, [unit.key(table) for unit in in_order], table, path, metadata)
            if table == SEGMENTS and rows != len(held):
                raise DataError(
                    f"{target.key(table)}: {len(held)} segments have {rows} rows of segments",
                    "restore the store from a copy",
                )
            store.put([(path, target.key(table))])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return len(held)


def _begin_ns(store: Store, unit: Unit) -> int:
    path = store.path(unit.key(SEGMENTS))
    begins = pq.read_table(path, columns=["begin_unix_ns"], filesystem=store.filesystem)
    return int(min(begins["begin_unix_ns"].to_pylist()))


def _merge(
    store: Store, keys: Iterable[str], table: str, path: Path, metadata: Mapping[bytes, str]
) -> int:
    """Write the rows of these files into one; return how many. Holds one group in memory."""
    columns = table_schema(f"fleet/{table}")
    schema = columns.arrow()
    rows = 0
    group: list[Any] = []
    with pq.ParquetWriter(
        path,
        schema.with_metadata(metadata),
        compression="zstd",
        use_dictionary=columns.dictionary_columns(),
    ) as writer:
        for key in keys:
            with pq.ParquetFile(store.path(key), filesystem=store.filesystem) as file:
                rows += file.metadata.num_rows
                for batch in file.iter_batches(_GROUP_ROWS):
                    group.append(pa.record_batch(batch.columns, schema=schema))
                    if _is_full(group):
                        writer.write_table(pa.Table.from_batches(group))
                        group.clear()
        if group:
            writer.write_table(pa.Table.from_batches(group))
    return rows


def _is_full(group: list[Any]) -> bool:
    rows: int = sum(batch.num_rows for batch in group)
    size_bytes: int = sum(batch.nbytes for batch in group)
    return rows >= _GROUP_ROWS or size_bytes >= _GROUP_BYTES


def _delete_compacted(
    store: Store, units: list[Unit], before_s: float, changed_s: dict[Unit, float]
) -> int:
    """Delete the units that others hold since before then; their file of `segments` first."""
    deleted = 0
    holders = [unit for unit in units if unit.is_compacted and changed_s[unit] <= before_s]
    for unit in units:
        if any(
            each != unit and segment_hashes(store, unit) <= segment_hashes(store, each)
            for each in holders
        ):
            if not deleted:
                store.sync(unit.key(SEGMENTS))  # the holder's folder is the same
            for table in FLEET_TABLES:  # SEGMENTS is the first
                store.delete(unit.key(table))
                deleted += 1
    return deleted


def _delete_unfinished(store: Store, units: set[Unit], before_s: float) -> int:
    """Delete old tables that have no file of `segments`: nobody was told that they are stored."""
    deleted = 0
    for table in FLEET_TABLES[1:]:
        for each in store.objects(table):
            unit = unit_of(each.key)
            if unit is None or unit in units or each.changed_s >= before_s:
                continue
            # It may have been sent again since those were listed.
            if (
                store.read_bytes(unit.key(SEGMENTS)) is None
                and store.changed_s(each.key) < before_s
            ):
                store.delete(each.key)
                deleted += 1
    return deleted
