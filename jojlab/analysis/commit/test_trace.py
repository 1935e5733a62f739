from functools import partial
from pathlib import Path

from jojlab.analysis.commit.story import commit_traces
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, make_run, run_of


def test_a_truncate_commit_in_order(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[4, 2], transactions=1)
    trace = commit_traces(Dataset.from_runs(run))["filesystem=ext4,journal_mode=truncate"]
    assert (trace.seed, trace.transaction_id) == (2, 0)
    assert [(r.block_type, r.length_bytes) for r in trace.runs] == [
        ("data", 8192),
        *[("fs-journal", 4096)] * 6,
        ("flush", 0),
        ("data", 8192),
        ("flush", 0),
        ("data", 8192),
        *[("fs-journal", 4096)] * 5,
    ]
    first = trace.runs[0]
    assert (first.file, first.cause) == ("/test.db-journal", "fdatasync of test.db-journal")
    assert (first.sector, first.queue_ns, first.issue_ns) == (800, 33_000, 35_000)
    assert all(0 <= r.issue_ns <= (r.complete_ns or 0) <= trace.latency_ns for r in trace.runs)
    assert [r.sector for r in trace.runs if r.block_type == "flush"] == [None, None]


def test_the_typical_commit_is_nearest_to_the_medians(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    # Of the two that have the median's bytes, the second has a latency nearer to the median.
    for length_bytes, service_time_ns in ((4096, 10), (8192, 900), (8192, 300), (65536, 350)):
        owners = [("data", "", None, length_bytes)]
        request = partial(builder.request, owners, service_time_ns=service_time_ns * 1000)
        builder.transaction(request)
    trace = commit_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert trace.transaction_id == 2
    assert [r.length_bytes for r in trace.runs] == [8192]


def test_a_checkpoint_is_traced_if_commits_send_nothing(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for length_bytes in (4096, 8192, 65536):
        builder.transaction(lambda: None)
        builder.transaction(
            partial(builder.request, [("data", "", None, length_bytes)]), kind="checkpoint"
        )
    trace = commit_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert (trace.phase, trace.transaction_id, trace.is_checkpoint) == ("checkpoint", 3, True)
    assert [r.length_bytes for r in trace.runs] == [8192]


def test_a_commit_is_traced_if_nothing_is_sent_at_all(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    builder.transaction(lambda: None)
    builder.transaction(lambda: None, kind="checkpoint")
    trace = commit_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert (trace.phase, trace.runs) == ("commit", ())
