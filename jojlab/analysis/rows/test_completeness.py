from dataclasses import replace
from pathlib import Path

from jojlab.analysis.rows.completeness import completeness
from jojlab.analysis.run.summary import summarise
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run, wal_capture


def run_with(folder: Path, lost: int, unattributed: int, reasons: list[str]) -> RunFolder:
    case = {"journal_mode": "wal"}
    run = RunFolder.create(
        folder / "run", experiment={}, seeds=[1, 2], cases=[("a", case)], fingerprint={}
    )
    for seed in run.seeds:
        builder = wal_capture(case, seed, transactions=2)
        builder.lost_events, builder.unattributed_bytes = lost, unattributed
        builder.incomplete_reasons = reasons
        run.add_capture("a", seed, builder.write(folder / "made"))
    return run


def test_a_whole_run_lacks_nothing(tmp_path: Path) -> None:
    missing = completeness(Dataset.from_runs(make_run(tmp_path / "run", transactions=2)))
    assert missing
    assert not any(m.is_incomplete for m in missing.values())


def test_counts_of_all_seeds_add_up(tmp_path: Path) -> None:
    run = run_with(tmp_path, lost=3, unattributed=512, reasons=[])
    missing = completeness(Dataset.from_runs(run))["a"]
    assert missing.is_incomplete
    assert (missing.lost_events, missing.unattributed_bytes) == (6, 1024)
    counts = ("6 events of the tracer were lost", "1024 bytes have no known owner")
    assert missing.in_words == replace(missing, reasons=counts[1:]).in_words == counts


def test_a_reason_alone_makes_a_case_incomplete(tmp_path: Path) -> None:
    reason = "requests of write: 1 traced, 2 counted by the device"
    missing = completeness(Dataset.from_runs(run_with(tmp_path, 0, 0, [reason])))["a"]
    assert missing.is_incomplete
    assert missing.reasons == missing.in_words == (reason,)


def test_notes_of_a_capture_do_not_make_it_incomplete(
    tmp_path: Path,
) -> None:
    case = {"journal_mode": "wal"}
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", case)], fingerprint={}
    )
    builder = wal_capture(case, 1, transactions=2)
    total = {"device": "sda", "operation": "write", "block_type": "data"}
    sums = [{**total, "bytes": 8192, "bytes_without_rows": 4096}]
    totals = {"exact": True, "bios_without_rows": 1, "sums": sums}
    failed = {"UNIQUE": {"statements": 3, "unexpected": 1, "first": "a.sql, line 7"}}
    counts = ("recorded_calls", "calls", "comparable_calls", "as_recorded_calls")
    moved = ("read_bytes", "written_bytes", "kept_writes", "seeded_writes", "copied_bytes")
    maps = ("by_name", "by_thread", "elsewhere", "carried", "start_error_ns")
    replay = {
        **dict.fromkeys((*counts, *moved), 0), **{key: {} for key in maps}, "left_out": [],
        "idle_threads": [],
        "otherwise": {"read": {"calls": 2, "first_call": 17}},
    }  # fmt: skip
    builder.more_manifest = {
        "untimed_requests": 3, "under_way_requests": 1, "waiting_bios": 2,
        "open_at_end": 2, "totals": totals,
        "failed_statements": failed, "replay": replay,
        "shared_wal": {"checkpoints": 9, "left_frames": 7, "found_longer": 8,
                       "longest_frames": 40, "longest_bytes": 164800},
    }  # fmt: skip
    run.add_capture("a", 1, builder.write(tmp_path / "made"))
    missing = completeness(Dataset.from_runs(run))["a"]
    assert not missing.is_incomplete
    failures, open_at_end, otherwise, wal, rows, of_type, under_way, untimed, waiting = (
        missing.notes
    )
    assert under_way == "1 request was under way at the end: its times are not known"
    assert waiting == "2 bios were in no request at the end: they have no rows"
    assert open_at_end == "2 transactions without an end in the scripts: rolled back"
    assert wal == (
        "other connections kept the WAL from being begun anew: 8 of 9 checkpoints found it longer "
        "than the one before, 7 left frames; it grew to 40 frames, 164800 bytes"
    )
    assert failures == "2 statements failed that may: UNIQUE (first: a.sql, line 7)"
    assert otherwise.startswith("2 calls of read ended otherwise")
    assert otherwise.endswith("call 17")
    assert rows.startswith("1 bios have no rows")
    assert "exact" in rows
    assert of_type == "sda write data: 8192 bytes, 4096 of them without rows"
    assert untimed.startswith("3 requests completed at an unknown time")


def test_a_failed_case_is_unfinished_a_skipped_one_is_not(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    assert summarise(run).unfinished_cases == ()
    run.mark("filesystem=ext4,journal_mode=wal", "failed", "the guest panicked")
    assert [case.reason for case in summarise(run).unfinished_cases] == ["the guest panicked"]


def test_a_run_without_captures_has_a_summary(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", {}), ("b", {})], fingerprint={}
    )
    summary = summarise(run)
    assert [case.status for case in summary.cases] == ["pending", "pending"]
    assert summary.measured_cases == ()
