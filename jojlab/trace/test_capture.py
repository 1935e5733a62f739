import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.foundation.errors import INCOMPLETE, DataError
from jojlab.trace.capture import Capture
from jojlab.trace.schema import TABLES, table_schema
from tests.captures import truncate_capture, wal_capture

CASE = {"filesystem": "ext4", "journal_mode": "truncate"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return truncate_capture(CASE, seed=7, transactions=3).write(tmp_path / "capture")


def test_opens_and_counts_rows(folder: Path) -> None:
    capture = Capture.open(folder)
    # 3 x (7 writes + 2 flushes) + 1 at the end; the journal's requests have 5 and 4 page runs.
    assert capture.row_counts["requests"] == 28
    assert capture.row_counts["page_runs"] == 3 * (1 + 5 + 1 + 1 + 1 + 4 + 1) + 1
    assert capture.manifest["case"] == CASE
    assert capture.lost_events == 0
    assert not capture.is_incomplete


@pytest.mark.parametrize("table", TABLES)
def test_missing_table_is_named(folder: Path, table: str) -> None:
    (folder / f"{table}.parquet").unlink()
    with pytest.raises(DataError, match=rf"{table}\.parquet: missing table") as caught:
        Capture.open(folder)
    assert caught.value.exit_code == INCOMPLETE
    assert "run the case again" in caught.value.remedy


@pytest.mark.parametrize("kept", [0, 3, 200, -1])
def test_truncated_table_is_named(folder: Path, kept: int) -> None:
    path = folder / "requests.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataError, match=r"requests\.parquet: damaged or cut short"):
        Capture.open(folder)


def test_bytes_wrong_in_the_middle_are_found(folder: Path) -> None:
    path = folder / "page_runs.parquet"
    table = pq.read_table(path)
    pq.write_table(table, path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[60] ^= 0xFF  # inside the first column's first page
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"page_runs\.parquet: damaged or cut short"):
        Capture.open(folder)


def test_other_columns_are_refused(folder: Path) -> None:
    path = folder / "files.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["inode"]), path)
    with pytest.raises(DataError, match=r"missing \['inode'\]"):
        Capture.open(folder)


def test_other_types_are_refused(folder: Path) -> None:
    path = folder / "counters.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("value")
    values = table.column("value").cast(pa.float64())
    pq.write_table(table.set_column(place, "value", values), path)
    with pytest.raises(
        DataError, match=r"column value is double, schema/counters\.toml says int64"
    ):
        Capture.open(folder)


def test_null_where_none_may_be_is_refused(folder: Path) -> None:
    path = folder / "transactions.parquet"
    rows = pq.read_table(path).to_pylist()
    rows[0]["begin_ns"] = None
    fields = [pa.field(f.name, f.type) for f in table_schema("transactions").arrow()]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), path)
    with pytest.raises(DataError, match="column begin_ns has 1 nulls"):
        Capture.open(folder)


def test_another_schema_version_is_refused(folder: Path) -> None:
    path = folder / "manifest.parquet"
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        if row["key"] == "schema_version":
            row["value"] = "1"
    pq.write_table(pa.Table.from_pylist(rows, schema=table_schema("manifest").arrow()), path)
    with pytest.raises(DataError, match="schema_version 1, this joj reads 3"):
        Capture.open(folder)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("unattributed_bytes", "null", "unattributed_bytes must be a whole number"),
        ("lost_events", '"2"', "lost_events must be a whole number"),
        ("incomplete_reasons", '"lost"', "incomplete_reasons must be a list"),
        ("clock", "{}", "clock must be text"),
        ("clock", "[" * 100_000, "key clock: not JSON"),
    ],
)
def test_a_manifest_of_wrong_types_is_refused(
    folder: Path, key: str, value: str, words: str
) -> None:
    path = folder / "manifest.parquet"
    rows = [row for row in pq.read_table(path).to_pylist() if row["key"] != key]
    rows.append({"key": key, "value": value})
    pq.write_table(pa.Table.from_pylist(rows, schema=table_schema("manifest").arrow()), path)
    with pytest.raises(DataError, match=f"manifest.parquet: {words}"):
        Capture.open(folder)


def test_lost_events_make_it_incomplete(tmp_path: Path) -> None:
    builder = wal_capture({"journal_mode": "wal"}, seed=1, transactions=1)
    builder.lost_events = 2
    assert Capture.open(builder.write(tmp_path)).is_incomplete


def test_segments_of_a_live_tracing_are_one_table_in_order(folder: Path) -> None:
    whole = Capture.open(folder)
    requests = whole.read("requests")
    (folder / "requests").mkdir()
    pq.write_table(requests.slice(0, 10), folder / "requests" / "000000.parquet")
    pq.write_table(requests.slice(10, 4), folder / "requests" / "999999.parquet")
    pq.write_table(requests.slice(14, 4), folder / "requests" / "1000000.parquet")
    (folder / "requests" / "000003.partial").write_bytes(b"cut short by a kill")
    pq.write_table(requests.slice(18), folder / "requests.parquet")
    segmented = Capture.open(folder)
    assert segmented.row_counts == whole.row_counts
    assert segmented.read("requests") == requests
    assert [path.name for path in segmented.paths("requests")] == [
        "000000.parquet",
        "999999.parquet",
        "1000000.parquet",
        "requests.parquet",
    ]
    truncated = folder / "requests" / "999999.parquet"
    truncated.write_bytes(truncated.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"999999\.parquet: damaged or cut short"):
        Capture.open(folder)


def declare(folder: Path, tables: list[str]) -> None:
    path = folder / "manifest.parquet"
    rows = [row for row in pq.read_table(path).to_pylist() if row["key"] != "tables"]
    rows.append({"key": "tables", "value": json.dumps(tables)})
    pq.write_table(pa.Table.from_pylist(rows, schema=table_schema("manifest").arrow()), path)


def test_a_capture_has_the_tables_that_it_declares(folder: Path) -> None:
    declared = [table for table in TABLES if table not in ("transactions", "counters")]
    declare(folder, declared)
    with pytest.raises(DataError, match=r"has \['counters', 'transactions'\], which its manifest"):
        Capture.open(folder)
    for table in ("transactions", "counters"):
        (folder / f"{table}.parquet").unlink()
    capture = Capture.open(folder)
    assert list(capture.tables) == declared
    assert capture.paths("counters") == []
    with pytest.raises(DataError, match="has no table transactions; it has requests, page_runs"):
        capture.read("transactions")
    declare(folder, [*declared, "weather"])
    with pytest.raises(DataError, match=r"\['weather'\] are not of schema"):
        Capture.open(folder)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("program", {"command": []}, "program"),
        ("replay", {"by_name": 3}, "replay"),
        ("failed_statements", {"UNIQUE": {"statements": "3"}}, "failed_statements.UNIQUE"),
        ("tables", "requests", "tables must be a list"),
    ],
)
def test_an_entry_of_the_manifest_has_its_type(
    folder: Path, key: str, value: object, said: str
) -> None:
    path = folder / "manifest.parquet"
    rows = [*pq.read_table(path).to_pylist(), {"key": key, "value": json.dumps(value)}]
    pq.write_table(pa.Table.from_pylist(rows, schema=table_schema("manifest").arrow()), path)
    with pytest.raises(DataError, match=said):
        Capture.open(folder)
