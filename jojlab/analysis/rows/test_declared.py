"""Tests that what a capture does not have is absent, and said."""

from pathlib import Path

from jojlab.analysis.run.summary import summarise
from jojlab.trace.run_folder import RunFolder
from tests.captures import CaptureBuilder, run_of, wal_capture


def without(folder: Path, *absent: str) -> RunFolder:
    """A run of one capture that has not all tables."""
    builder: CaptureBuilder = wal_capture({"journal_mode": "wal"}, 1, transactions=3)
    tables = [table for table in builder.tables if table not in absent]
    builder.more_manifest = {"tables": tables}
    return run_of(folder, builder)


def test_a_capture_without_requests_has_times_and_no_bill(tmp_path: Path) -> None:
    [case] = summarise(without(tmp_path, "requests", "page_runs", "files")).cases
    assert case.figures.median["transactions"] == 3
    assert case.bill is None
    assert "bytes_per_commit" not in case.figures.median
    assert [note.split(":")[0] for note in case.missing.notes] == ["no table of requests"]


def test_a_capture_without_transactions_has_traffic_and_no_figure(tmp_path: Path) -> None:
    [case] = summarise(without(tmp_path, "transactions"), with_traffic=True).cases
    assert not case.figures.seeds
    assert case.bill is None
    assert case.traffic
    assert [note.split(":")[0] for note in case.missing.notes] == ["no table of transactions"]
