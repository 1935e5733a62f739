"""Tests how much a case writes, and when that is too much."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from jojlab.experiment.cases import complete
from jojlab.experiment.plan import contents_bytes, refuse_small_device
from jojlab.model.field import Value
from jojlab.model.filesystem import MIB
from jojlab.model.workloads import workload_of
from jojlab.model.workloads.sqlite import table_bytes

GIB = 1 << 30


def files_bytes(settings: dict[str, Value]) -> int:
    return workload_of(settings).files_bytes(settings)


@pytest.mark.parametrize("value_bytes", [0, 100, 1000, 2100, 4000, 4090, 9000])
@pytest.mark.parametrize("page_bytes", [1024, 4096])
def test_a_table_is_as_large_as_sqlite_makes_it(
    tmp_path: Path, value_bytes: int, page_bytes: int
) -> None:
    rows = 4000
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute(f"PRAGMA page_size = {page_bytes}")
        database.execute("CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        database.executemany(
            "INSERT INTO record VALUES (?, ?)",
            ((key, "a" * value_bytes) for key in range(1, rows + 1)),
        )
    found = table_bytes(rows, value_bytes, page_bytes)
    assert found == pytest.approx((tmp_path / "a.db").stat().st_size, rel=0.03, abs=2 * page_bytes)


def test_a_database_larger_than_the_device_is_refused_with_what_fits() -> None:
    settings = complete({"initial_rows": 600_000, "value_bytes": 4000, "device": "ufs-3.1"})
    told = refuse_small_device(settings, 2 * GIB)
    assert "makes databases of 2344 MiB" in told
    assert "which has 2048 MiB" in told
    rows = int(told.split("; ")[1].split()[0])
    assert refuse_small_device(settings | {"initial_rows": rows}, 2 * GIB) == ""
    assert refuse_small_device(settings | {"initial_rows": rows + 1}, 2 * GIB)
    assert refuse_small_device(settings, int(told.rpartition(" = ")[2])) == ""


def test_wal_databases_connections_and_inserts_add_up() -> None:
    one = complete({"initial_rows": 100_000, "value_bytes": 4000})
    one |= {"workload": "sqlite-update"}
    alone = files_bytes(one)
    assert files_bytes(one | {"databases": 2, "connections": 3}) == 6 * alone
    assert files_bytes(one | {"connections": 3, "sharing": "shared"}) == alone
    assert files_bytes(one | {"journal_mode": "wal"}) == alone + 80 * MIB
    filled = one | {"journal_mode": "wal"} | {"wal_prefill_bytes": 100 * MIB}
    assert files_bytes(filled) == alone + 100 * MIB
    chunks = one | {"database_prefill_bytes": 96 * MIB}
    assert 0 <= files_bytes(chunks) - alone < 96 * MIB
    assert files_bytes(chunks) % (96 * MIB) == 0
    assert files_bytes(one | {"transactions": 110_000}) == alone
    more = one | {"workload": "sqlite-insert", "transactions": 110_000}
    assert files_bytes(more) > 2 * alone


def test_a_device_is_expected_to_hold_what_is_written_and_no_more_than_it_can() -> None:
    small = complete({})
    assert contents_bytes(small, 2 * GIB) < 140 * MIB
    large = complete({"initial_rows": 250_000, "value_bytes": 4000})
    assert GIB < contents_bytes(large, 2 * GIB) < GIB + 200 * MIB
    assert contents_bytes(large | {"filesystem": "f2fs"}, 2 * GIB) == 2 * GIB
