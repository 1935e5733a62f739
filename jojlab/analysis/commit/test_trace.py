from functools import partial
from pathlib import Path

from jojlab.analysis.commit.trace import commit_traces
from jojlab.trace.run_tables import open_tables
from tests.captures import CaptureBuilder, make_run, run_of


def test_a_truncate_commit_in_order(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[4, 2], transactions=3)
    trace = commit_traces(open_tables(run))["filesystem=ext4,journal_mode=truncate"]
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
    sizes = [4096, 8192, 8192, 65536]
    for length_bytes in sizes:
        builder.transaction(partial(builder.request, [("data", "", None, length_bytes)]))
    run = run_of(tmp_path, builder)
    trace = commit_traces(open_tables(run))["a"]
    assert trace.transaction_id == 1
    assert [r.length_bytes for r in trace.runs] == [8192]
