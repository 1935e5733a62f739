"""Tests of the bill of a commit, and of the lines that grew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.analysis.commit.bill import BillLine, Total, bill_json, commit_bills, grown_lines
from jojlab.analysis.figures.case_figures import case_figures
from jojlab.model.figures import CAUSED, FIGURES
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import CaptureBuilder, make_run, run_of, truncate_capture, wal_capture

KIB = 1024


def rows_by_key(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str, str], tuple[Any, Any]]:
    return {
        (r["block_type"], r["file_kind"], r["file"], r["cause"]): (r["requests"], r["bytes"])
        for r in rows
    }


def test_truncate_costs_what_it_is_known_to_cost(tmp_path: Path) -> None:
    run = run_of(tmp_path, truncate_capture({"journal_mode": "truncate"}, 1, transactions=10))
    bill = bill_json(commit_bills(Dataset.from_runs(run))["a"])
    assert bill["transactions"] == 10
    within = bill["within_commit"]["per_commit"]
    assert within == {"requests": 9, "bytes": 69632, "flushes": 2}
    # With the block that is written back at the end.
    whole = bill["per_commit"]
    assert (whole["requests"], whole["bytes"], whole["flushes"]) == (9.1, 69632 + 409.6, 2)
    assert rows_by_key(bill["rows"]) == {
        ("fs-journal", "none", "", "fdatasync of test.db-journal"): (4, 44 * KIB),
        ("data", "db-journal", "/test.db-journal", "fdatasync of test.db-journal"): (2, 16 * KIB),
        ("data", "db", "/test.db", "fdatasync of test.db"): (1, 8 * KIB),
        ("flush", "db-journal", "", "fdatasync of test.db-journal"): (1, 0),
        ("flush", "db", "", "fdatasync of test.db"): (1, 0),
    }
    assert bill["deferred"]["total"] == {"requests": 1, "bytes": 4096, "flushes": 0}
    assert rows_by_key(bill["deferred"]["rows"]) == {
        ("fs-metadata", "none", "", "syncfs"): (0.1, 409.6)
    }
    assert (bill["lost_events"], bill["unattributed_bytes"]) == (0, 0)


def test_super_journals_stand_as_one_file(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "persist"}, 1)
    for name in ("/main.db-mj0A1B2C9FF", "/main.db-mjFFDE6E961", "/main.db-mjother"):
        file_id = builder.file(name, "super-journal")
        builder.transaction(lambda: None)
        builder.request([("data", "", file_id, 4 * KIB)], asker=("fsync", file_id))
    assert rows_by_key(
        bill_json(commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"])["rows"]
    ) == {
        ("data", "super-journal", "/main.db-mj*", "fsync of main.db-mj*"): (2 / 3, 8 * KIB / 3),
        ("data", "super-journal", "/main.db-mjother", "fsync of main.db-mjother"): (
            1 / 3,
            4 * KIB / 3,
        ),
    }


def test_checkpoints_are_deferred_not_free(tmp_path: Path) -> None:
    run = run_of(tmp_path, wal_capture({"journal_mode": "wal"}, 1, transactions=20))
    bill = commit_bills(Dataset.from_runs(run))["a"]
    assert bill.total("commit") == Total(3 * 20, 28 * KIB * 20, 0)
    # Two checkpoints of 12 KiB and a flush each, and one block at the end.
    assert bill.total("deferred") == Total(2 * 2 + 1, 2 * 12 * KIB + 4096, 2)


def test_a_checkpoint_inside_the_commit_phase_is_deferred(tmp_path: Path) -> None:
    builder = wal_capture({"journal_mode": "wal"}, 1, transactions=20)
    for request in builder.tables["requests"]:
        if request["phase"] == "checkpoint":
            request["phase"] = "commit"  # as issued between two commits
    bill = commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert bill.total("commit") == Total(3 * 20, 28 * KIB * 20, 0)


def test_seeds_are_added_up(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2, 3], transactions=5)
    bills = commit_bills(Dataset.from_runs(run))
    assert bills.keys() == {f"filesystem=ext4,journal_mode={mode}" for mode in ("truncate", "wal")}
    bill = bill_json(bills["filesystem=ext4,journal_mode=truncate"])
    assert bill["transactions"] == 15
    own = bill["within_commit"]["total"]
    assert own == {"requests": 9 * 15, "bytes": 69632 * 15, "flushes": 2 * 15}
    assert bill["total"] == {"requests": 9 * 15 + 3, "bytes": 69632 * 15 + 3 * 4096, "flushes": 30}


def test_percentiles_are_the_figures_of_the_case(tmp_path: Path) -> None:
    """Three seeds whose commits, taken together, have another median than their medians."""
    data = Dataset.from_runs(make_run(tmp_path / "run", seeds=[1, 2, 5], transactions=7))
    figures = case_figures(data)
    for case_id, bill in commit_bills(data).items():
        for name, value in bill.latency_ns.items():
            assert value == figures[case_id].median.get(name)


def test_warm_up_is_not_billed(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for phase in ("warm-up", "commit"):
        builder.phase = phase
        builder.transaction(lambda: one_write(builder))
    bill = commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert (bill.transactions, bill.total("commit")) == (1, Total(1, 4096, 0))


def test_a_bill_names_the_asker_or_submitter_of_each_request(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "delete"}, 1)
    db = builder.file("/data/base/test.db", "db")
    nameless = builder.file("", "other")
    root = builder.file("/", "directory")

    def body() -> None:
        for asker in (("fsync", db), ("fsync", nameless), ("fsync", root), ("sync", None), None):
            builder.request([("data", "", db, 4096)], asker=asker)
        builder.request([("data", "", db, 4096)], submitter_comm="kworker/u2:0")
        builder.request([("data", "", db, 4096)], operation="read")
        builder.request([], operation="discard", length_bytes=8192, block_type="fs-metadata")

    builder.transaction(body)
    run = run_of(tmp_path, builder)
    bill = commit_bills(Dataset.from_runs(run))["a"]
    causes = {(row.operation, row.cause): row.bytes for row in bill.rows}
    assert causes == {
        ("write", "fsync of test.db"): 4096,
        ("write", "fsync"): 4096,
        ("write", "fsync of /"): 4096,
        ("write", "sync"): 4096,
        ("write", "by joj-agent"): 4096,
        ("write", "writeback"): 4096,
        ("read", "read"): 4096,
        ("discard", "by joj-agent"): 0,
    }
    assert {row.dataless_bytes for row in bill.rows if row.operation == "discard"} == {8192}
    assert bill.missing.unattributed_bytes == 0  # a discard has no pages, so no owner to know


def test_a_request_of_many_owners_is_counted_once(tmp_path: Path) -> None:
    """NILFS2 puts its log, data and metadata into one request."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    wal = builder.file("/test.db-wal", "wal")
    runs = [("fs-journal", "", None, 4096), ("data", "", wal, 8192), ("fs-metadata", "", None, 512)]
    builder.transaction(lambda: builder.request(runs, sector=64))
    bill = commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert {(r.block_type, r.requests, r.bytes) for r in bill.rows} == {
        ("fs-journal", 1, 4096),
        ("data", 0, 8192),
        ("fs-metadata", 0, 512),
    }


def test_bytes_without_an_owner_are_billed_and_told(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)

    def body() -> None:
        builder.request([("data", "", None, 4096)], length_bytes=12288)  # 8192 not accounted for
        builder.request([], length_bytes=4096)  # no page run at all

    builder.transaction(body)
    bill = bill_json(commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"])
    assert bill["per_commit"]["bytes"] == 16384
    assert rows_by_key(bill["rows"])[("unknown", "none", "", "by joj-agent")] == (1, 12288)
    assert bill["unattributed_bytes"] == 12288


def one_write(builder: CaptureBuilder) -> None:
    builder.request([("data", "", None, 4096)])


_SECTORS = st.integers(1, 16)
_RUN = st.tuples(
    st.sampled_from(["data", "fs-journal", "fs-metadata", "unknown"]),
    st.just(""),
    st.sampled_from([None, 0, 1]),
    _SECTORS.map(lambda n: n * 512),
)
_REQUEST = st.fixed_dictionaries(
    {
        "runs": st.lists(_RUN, max_size=4),
        "operation": st.sampled_from(["read", "write", "flush", "discard"]),
        "missing_bytes": st.sampled_from([0, 0, 512, 4096]),
        "phase": st.sampled_from(["warm-up", "commit", "checkpoint", "settle"]),
        "asker": st.sampled_from([None, ("fsync", 0), ("fdatasync", 1), ("sync", None)]),
    }
)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(captures=st.lists(st.lists(_REQUEST, max_size=12), min_size=12, max_size=12))
def test_rows_add_up_to_the_requests(
    tmp_path_factory: pytest.TempPathFactory, captures: list[list[dict[str, Any]]]
) -> None:
    folder = tmp_path_factory.mktemp("bill")
    names = [f"case {number}" for number in range(len(captures))]
    run = RunFolder.create(
        folder / "run", experiment={}, seeds=[1], cases=[(n, {}) for n in names], fingerprint={}
    )
    for name, requests in zip(names, captures, strict=True):
        run.add_capture(name, 1, arbitrary_capture(requests).write(folder / "made"))
    data = Dataset.from_runs(run)
    totals = direct_totals(data)
    for name, bill in commit_bills(data).items():
        assert {part: bill.total(part) for part in ("commit", "deferred")} == totals[name]


def arbitrary_capture(requests: list[dict[str, Any]]) -> CaptureBuilder:
    """Build a capture of one commit and any requests, accounted for by their runs or not."""
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    builder.file("/test.db", "db")
    builder.file("/test.db-wal", "wal")
    builder.transaction(lambda: one_write(builder))
    for request in requests:
        builder.phase = request["phase"]
        flush = request["operation"] == "flush"
        runs = [] if flush else request["runs"]
        length_bytes = sum(run[3] for run in runs) + (0 if flush else request["missing_bytes"])
        builder.request(
            runs,
            operation=request["operation"],
            asker=request["asker"],
            length_bytes=length_bytes,
        )
    return builder


def direct_totals(data: Dataset) -> dict[str, dict[str, Total]]:
    """Add the requests of every case up one by one, as the tables state them."""
    sums: dict[str, dict[str, list[int]]] = {}
    for row in data.rows("SELECT * FROM requests JOIN captures USING (capture)"):
        case = sums.setdefault(row["case_id"], {"commit": [0, 0, 0], "deferred": [0, 0, 0]})
        if row["phase"] != "warm-up":
            total = case["commit" if row["phase"] == "commit" else "deferred"]
            total[0] += 1
            total[1] += row["length_bytes"] if row["operation"] != "discard" else 0
            total[2] += row["operation"] == "flush"
    return {
        case_id: {part: Total(*total) for part, total in case.items()}
        for case_id, case in sums.items()
    }


def test_reads_and_rollbacks_stand_in_parts_of_their_own(tmp_path: Path) -> None:
    """Nine reads beside each write cost the write nothing."""
    bills = {}
    for reads in (0, 9):
        builder = CaptureBuilder({"journal_mode": "wal"}, 1)
        db = builder.file("/a.db", "db")
        write = partial(one_write, builder)
        read = partial(builder.request, [("data", "", db, 4096)], operation="read")
        for _ in range(4):
            builder.transaction(write)
            for _ in range(reads):
                builder.phase = "read-only"
                builder.transaction(read, kind="read-only")
                builder.phase = "commit"
        for request in builder.tables["requests"]:
            request["phase"] = "commit"
        bills[reads] = commit_bills(Dataset.from_runs(run_of(tmp_path / str(reads), builder)))["a"]
    assert bills[0].total(*CAUSED) == bills[9].total(*CAUSED) == Total(4, 4 * 4096, 0)
    assert (bills[0].transactions, bills[9].transactions) == (4, 4)
    assert bills[9].total("read-only") == Total(36, 36 * 4096, 0)
    assert bill_json(bills[9])["apart"]["read-only"]["transactions"] == 36


def test_reading_a_program_is_no_part_of_a_commit(tmp_path: Path) -> None:
    builder = CaptureBuilder({"workload": "program"}, 1)
    builder.more_manifest = {
        "program": {
            "command": ["app"], "exit_code": 0, "signal": None, "timed_out": False, "output": "",
            "output_bytes": 0, "commits": 1, "checkpoints": 0, "rollbacks": 0, "syncs": 0,
            "bytes_after_last": 0,
        }
    }  # fmt: skip
    own, db = builder.file("/app/shop.py", "other"), builder.file("/app/a.db", "db")

    def read(owner: int | None) -> None:
        kind = "data" if owner is not None else "fs-metadata"
        builder.request([(kind, "", owner, 4096)], operation="read")

    read(own)
    read(None)
    read(db)

    def commit() -> None:
        read(own)
        read(None)
        read(db)
        one_write(builder)

    builder.transaction(commit)
    bill = commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    found = {part: bill.total(part).requests for part in ("commit", "program", "read-only")}
    assert found == {"commit": 3, "program": 3, "read-only": 1}


JOURNAL = BillLine("commit", "write", "fs-journal", "", "fsync", 2, 8192)
DATA = BillLine("commit", "write", "data", "a.db", "fsync", 1, 4096)
FLUSH = BillLine("commit", "flush", "flush", "", "fsync", 2, 0)
LATER = BillLine("deferred", "write", "data", "a.db", "writeback", 0.5, 2048)
OTHERS = BillLine("background", "write", "data", "b.db", "fsync", 9, 65536)
LINES = (JOURNAL, DATA, FLUSH, LATER, OTHERS)


@pytest.mark.parametrize(
    ("figure", "lines"),
    [
        ("bytes_per_commit", (JOURNAL, DATA, LATER, FLUSH)),
        ("requests_per_commit", (JOURNAL, FLUSH, DATA, LATER)),
        ("writes_per_commit", (JOURNAL, DATA)),
        ("flushes_per_commit", (FLUSH,)),
        ("fs_journal_bytes_per_commit", (JOURNAL,)),
        ("data_bytes_per_commit", (DATA, LATER)),
        ("deferred_bytes_per_commit", (LATER,)),
        ("background_requests_per_commit", (OTHERS,)),
        ("nand_bytes_per_commit", (OTHERS, JOURNAL, DATA, LATER)),
        ("latency_ns_p99", (JOURNAL, FLUSH, DATA, LATER)),
    ],
)
def test_the_lines_of_a_figure_dearest_first(figure: str, lines: tuple[BillLine, ...]) -> None:
    assert figure in FIGURES
    assert tuple(found.line for found in grown_lines(figure, LINES, None)) == lines


def test_lines_that_did_not_grow_are_not_told() -> None:
    more = replace(JOURNAL, bytes=12288)
    [found] = grown_lines("bytes_per_commit", (more, DATA, LATER), LINES)
    assert (found.line, found.before) == (more, JOURNAL)
