from pathlib import Path

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of, truncate_capture, wal_capture


def test_the_first_write_into_the_journal_of_each_commit(tmp_path: Path) -> None:
    for mode, make, writes, first in (
        ("truncate", truncate_capture, 7, 20 * 1024),
        ("wal", wal_capture, 3, 16 * 1024),
    ):
        run = run_of(tmp_path / mode, make({"journal_mode": mode}, 1, 10))
        median = case_figures(Dataset.from_runs(run))["a"].median
        assert median["writes_per_commit"] == writes
        assert median["first_journal_write_bytes"] == first


def test_the_first_journal_write_is_zero_without_a_journal(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "off"}, 1)
    builder.transaction(lambda: builder.request([("data", "", None, 4096)]))
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert (median["writes_per_commit"], median["first_journal_write_bytes"]) == (1, 0)


def test_two_streams_that_are_mixed_are_each_sequential_or_not(tmp_path: Path) -> None:
    builder = CaptureBuilder({"filesystem": "ext4"}, 1)
    places = iter((800, 8, 808, 816))

    def body() -> None:
        number = builder.transaction_id or 0
        builder.request([("data", "", None, 4096)], sector=next(places))
        builder.request([("fs-journal", "commit", None, 4096)], sector=10_000 + 8 * number)

    for _ in range(4):
        builder.transaction(body)
    median = case_figures(Dataset.from_runs(run_of(tmp_path, builder)))["a"].median
    assert median["sequential_data_percent"] == 25  # 816 after 808
    assert median["sequential_journal_percent"] == 75  # all but the first
