"""Tests which units count, at each step of a compaction and of a kill between two."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from jojlab.fleet.store.compaction import MANY_UNITS, compact
from jojlab.fleet.store.dataset import (
    SEGMENTS,
    Unit,
    is_known,
    live_units,
    segment_hashes,
    store_segment,
)
from jojlab.fleet.store.objects import Store, open_store
from jojlab.fleet.store.segment import CheckedSegment
from jojlab.foundation.errors import DataError
from jojlab.trace.schema import FLEET_TABLES, table_schema

NOW_S = 1_767_268_800.0  # 2026-01-01, noon
DAY = "2026-01-01"


def store_commit(store: Store, number: int, day: str = DAY, device: str = "a") -> str:
    """Store a segment of one commit; return its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = f"{number:064x}"
    folder = store.spool / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for table in FLEET_TABLES:
        schema = table_schema(f"fleet/{table}").arrow()
        values = {pa.int64(): number, pa.string(): str(number), pa.bool_(): True}
        rows = [{field.name: values[field.type] for field in schema}]
        count = 1 if table in (SEGMENTS, "commits") else 0
        pq.write_table(pa.Table.from_pylist(rows[:count], schema), folder / f"{table}.parquet")
    store_segment(store, device, name, CheckedSegment(day, {}), folder)
    return name


def counted_segments(store: Store) -> list[int]:
    """The segments that count, by the rows of their commits."""
    import pyarrow.parquet as pq

    tables = [pq.read_table(store.path(each.key("commits"))) for each in live_units(store)]
    return sorted(int(value) for table in tables for value in table["database_count"].to_pylist())


def compact_all(store: Store, grace_s: float = 1e9) -> tuple[int, int, int]:
    """Compact; return what was made, of how many, and how many files were deleted."""
    done = compact(store, NOW_S, grace_s=grace_s, all_days=True)
    return done.units, done.segments, done.deleted_files


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "data"), create=True)


def test_an_acknowledged_segment_is_synced_with_its_folders(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file, and all folders above it; also what one that was killed had put."""
    synced: set[Path] = set()
    fsync = os.fsync

    def note_sync(descriptor: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note_sync)
    name = store_commit(store, 1)
    folder = Path(store.url).resolve()
    for table in FLEET_TABLES:
        key = Unit(DAY, "a", name).key(table)
        assert {folder / each for each in Path(key).parents} <= synced
        assert any(each.name == f"{table}.parquet" for each in synced)
    synced.clear()
    store_commit(open_store(store.url), 1)
    key = Unit(DAY, "a", name).key(SEGMENTS)
    assert {folder / each for each in Path(key).parents} <= synced


def test_a_compaction_changes_no_row(store: Store) -> None:
    import pyarrow.parquet as pq

    names = [store_commit(store, number) for number in range(3)]
    assert compact_all(store) == (1, 3, 0)
    assert counted_segments(store) == [0, 1, 2]
    [unit] = live_units(store)
    assert segment_hashes(store, unit) == set(names)
    assert pq.read_metadata(store.path(unit.key("commits"))).num_row_groups == 1
    assert is_known(store, Unit(DAY, "a", names[1]))
    assert compact_all(store, grace_s=-1e12) == (0, 0, 15)
    assert counted_segments(store) == [0, 1, 2]
    assert is_known(store, Unit(DAY, "a", names[1]))
    assert not is_known(store, Unit(DAY, "b", names[1]))


def test_later_segments_are_compacted_with_the_rest(store: Store) -> None:
    store_commit(store, 1)
    store_commit(store, 2)
    compact_all(store)
    store_commit(store, 3)
    assert counted_segments(store) == [1, 2, 3]
    assert compact_all(store) == (1, 3, 0)
    assert counted_segments(store) == [1, 2, 3]
    assert len(live_units(store)) == 1
    assert compact_all(store, grace_s=-1e12) == (0, 0, 20)


def test_units_held_for_long_are_deleted_though_their_holder_is_held(store: Store) -> None:
    store_commit(store, 1)
    store_commit(store, 2)
    compact_all(store)
    [holder] = live_units(store)
    store_commit(store, 3)
    compact_all(store)
    os.utime(store.path(holder.key(SEGMENTS)), (0, 0))
    assert compact_all(store) == (0, 0, 10)
    assert counted_segments(store) == [1, 2, 3]


def copies(store: Store, keys: Iterable[str]) -> dict[str, bytes]:
    return {key: contents for key in keys if (contents := store.read_bytes(key)) is not None}


def test_the_file_of_segments_gets_its_name_when_all_else_is_durable(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def replace(source: Path, target: str) -> None:
        done.append(f"name {Path(target).relative_to(store.url).parts[0]}")
        os.rename(source, target)

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        done.append(f"sync {path.stem if path.suffix else path.relative_to(store.url).parts[0]}")

    store_commit(store, 1)  # its folders are there and durable
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "fsync", fsync)
    store_commit(store, 2)
    rest = set(FLEET_TABLES[1:])
    assert set(done[:5]) == {f"sync {table}" for table in FLEET_TABLES}
    assert set(done[5:9]) == {f"name {table}" for table in rest}
    assert set(done[9:13]) == {f"sync {table}" for table in rest}
    assert done[13:] == ["name segments", "sync segments"]


def test_a_kill_at_any_moment_changes_no_row(store: Store) -> None:
    """Every order of what a compaction and the deletion after it do, cut off at each step."""
    for number in range(3):
        store_commit(store, number)
    before = copies(store, [unit.key(t) for unit in live_units(store) for t in FLEET_TABLES])
    compact_all(store)
    [unit] = live_units(store)
    after = copies(store, [unit.key(table) for table in FLEET_TABLES])
    order = [unit.key(table) for table in (*FLEET_TABLES[1:], SEGMENTS)]
    folder = store.folder
    assert folder is not None
    for steps in range(len(order) + 1):
        shutil.rmtree(folder)
        there = before | {key: after[key] for key in order[:steps]}
        for key, contents in there.items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(contents)
        held_before = sorted(before)
        for deleted in [None, *held_before] if steps == len(order) else [None]:
            if deleted is not None:
                store.delete(deleted)
            assert counted_segments(store) == [0, 1, 2], (steps, deleted)


def test_damaged_files_stop_nothing_else(store: Store) -> None:
    damaged = store_commit(store, 1)
    for number in range(2, 5):
        store_commit(store, number, device="b" if number > 2 else "a")
    Path(store.path(Unit(DAY, "a", damaged).key("commits"))).write_bytes(b"PAR1")
    with pytest.raises(DataError, match=f"{DAY} a: "):
        compact_all(store)
    assert [unit.is_compacted for unit in live_units(store)] == [False, False, True]


def test_two_compactions_at_once(store: Store) -> None:
    """One that began earlier and ends later has made a unit that the other's holds."""
    store_commit(store, 1)
    store_commit(store, 2)
    compact_all(store)
    [small] = live_units(store)
    kept = copies(store, [small.key(table) for table in FLEET_TABLES])
    store_commit(store, 3)
    compact_all(store)
    compact_all(store, grace_s=-1e12)
    for key, contents in kept.items():
        store.put_bytes(key, contents)
    assert counted_segments(store) == [1, 2, 3]


def test_few_segments_of_today_are_let_be(store: Store) -> None:
    for number in range(MANY_UNITS - 1):
        store_commit(store, number)
    store_commit(store, 1, day="2025-12-30", device="b")
    store_commit(store, 2, day="2025-12-30", device="b")
    assert compact(store, NOW_S, grace_s=0).segments == 2
    store_commit(store, MANY_UNITS)
    assert compact(store, NOW_S, grace_s=0).segments == MANY_UNITS


def test_tables_of_an_upload_that_was_broken_off(store: Store) -> None:
    name = store_commit(store, 1)
    store.delete(Unit(DAY, "a", name).key(SEGMENTS))
    assert counted_segments(store) == []
    assert compact(store, NOW_S, grace_s=0).deleted_files == 0
    assert compact(store, 4e9, grace_s=0).deleted_files == 4


@pytest.mark.parametrize("seed", range(5))
def test_any_history_counts_each_segment_once(store: Store, seed: int) -> None:
    draw = np.random.default_rng(seed)
    sent: set[int] = set()
    for _ in range(30):
        match draw.integers(4):
            case 0 | 1:
                number = int(draw.integers(12))
                store_commit(store, number)
                sent.add(number)
            case 2:
                compact_all(store)
            case _:
                compact_all(store, grace_s=-1e12)
        assert counted_segments(store) == sorted(sent)
