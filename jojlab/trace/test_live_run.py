"""Tests what becomes of the run of a tracing when its tracer has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.errors import DataError
from jojlab.trace import run_folder as live_run
from jojlab.trace.run_folder import RunFolder
from tests.captures import wal_capture


def test_a_live_run_has_checksums_of_its_segments(tmp_path: Path) -> None:
    run, tables = live_run.begin(tmp_path / "run", "x", "/dev/x", ["x"])
    wal_capture({"journal_mode": "wal"}, 0, 3).write(tables)
    segment = tables / "requests" / "000000.parquet"
    segment.parent.mkdir()
    segment.write_bytes((tables / "requests.parquet").read_bytes())
    live_run.close(run)
    assert len(list(RunFolder.open(run.path).captures())) == 1
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    with pytest.raises(DataError, match=r"requests/000000\.parquet: damaged"):
        list(RunFolder.open(run.path).captures())


def test_one_without_a_table_is_taken_away(tmp_path: Path) -> None:
    run, _ = live_run.begin(tmp_path / "run", "x", "/dev/x", ["x"])
    live_run.close(run)
    assert not run.path.exists()
