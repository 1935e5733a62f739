from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.foundation.errors import UseError
from jojlab.recording.folder import Recording


def recording(folder: Path) -> Recording:
    rows = [{"key": "recording_version", "value": json.dumps(1)}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "manifest.parquet")
    return Recording.open(folder)


def test_rows_come_in_order_whatever_their_number(tmp_path: Path) -> None:
    opened = recording(tmp_path)
    (tmp_path / "calls").mkdir()
    for segment in range(2):
        numbers = range(segment * 20_000, (segment + 1) * 20_000)
        table = pa.table({"call_id": numbers, "name": ["read", None] * 10_000})
        pq.write_table(table, tmp_path / "calls" / f"{999_999 + segment}.parquet")
    rows = list(opened.rows("calls"))
    assert [row["call_id"] for row in rows] == list(range(40_000))
    assert rows[-1] == {"call_id": 39_999, "name": None}


def test_a_small_file_that_stands_for_too_much_is_refused(tmp_path: Path) -> None:
    opened = recording(tmp_path)
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000), ["x" * (2 << 20)])
    file = tmp_path / "snapshot.parquet"
    pq.write_table(pa.table({"path": texts}), file, store_schema=False)
    assert file.stat().st_size < 1 << 20
    with pytest.raises(UseError, match="column path has texts of 2097152 bytes"):
        list(opened.rows("snapshot"))


def test_an_unreadable_table_is_refused_by_its_name(tmp_path: Path) -> None:
    opened = recording(tmp_path)
    (tmp_path / "threads.parquet").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    with pytest.raises(UseError, match=r"threads\.parquet: not readable"):
        list(opened.rows("threads"))
    (tmp_path / "manifest.parquet").write_bytes(b"")
    with pytest.raises(UseError, match="no recording"):
        Recording.open(tmp_path)


def test_a_recording_of_sql_is_no_replay(tmp_path: Path) -> None:
    recording(tmp_path).refuse_sql("joj replay")
    rows = [("recording_version", 1), ("recorder", "sqlite")]
    table = pa.Table.from_pylist([{"key": key, "value": json.dumps(it)} for key, it in rows])
    pq.write_table(table, tmp_path / "manifest.parquet")
    with pytest.raises(UseError, match=r"joj replay: .*: a recording of SQL"):
        Recording.open(tmp_path).refuse_sql("joj replay")
