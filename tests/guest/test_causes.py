"""Why the guest's filesystems write: which call each byte serves (what a commit carries is in
test_captures.py, whose run it shares).
"""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.commit.bill import commit_bills
from jojlab.lab.lab import Lab
from jojlab.trace.dataset import Dataset
from tests.guest.experiments import few_inserts, run_experiment

WAYS = {
    "o_sync": "O_SYNC write",
    "o_dsync": "O_DSYNC write",
    "fsync": "fsync",
    "fdatasync": "fdatasync",
    "o_direct": "O_DIRECT write",
    "o_direct_sync": "O_SYNC write",
    "mmap_sync": "msync",
    "sync_file_range": "sync_file_range",
    "rwf_dsync": "O_DSYNC write",
}


def test_every_way_to_wait_is_a_cause(lab: Lab, tmp_path: Path) -> None:
    run = run_experiment(
        lab,
        tmp_path / "run",
        "sync-modes",
        *("filesystem=ext4", f"sync_mode={','.join(WAYS)}", "transactions=17"),
        *("access=random", "threads=1"),
    )
    bills = commit_bills(Dataset.of(run))
    for entry in run.cases:
        rows = bills[entry.case_id].part("commit")
        calls = {row.cause.split(" of ")[0] for row in rows if row.block_type == "data"}
        assert calls == {WAYS[str(entry.case["sync_mode"])]}, entry.case_id


def test_compressed_extents_of_btrfs_have_their_file(lab: Lab, tmp_path: Path) -> None:
    settings = ("filesystem=btrfs", "mount_options=noatime,compress-force=zstd")
    _, bill = few_inserts(lab, tmp_path / "run", *settings, "journal_mode=wal")
    data = [row for row in bill["rows"] if row["block_type"] == "data"]
    assert {row["file"] for row in data} == {"/main.db-wal"}
    assert 0 < sum(row["bytes"] for row in data) < 8192
