"""Why the guest's filesystems write: which call each byte serves, and what a commit carries."""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.commit.bill import bill_json
from jojlab.experiment.execute import Laboratory
from tests.guest.experiments import ALL_FILESYSTEMS, few_inserts, run_experiment

# What one insert makes a filesystem commit: journal and metadata, by the file that is synced.
# Where the reasons of commits differ, allocation came with the one or with the next.
REASONS = {
    ("ext4", "truncate"): {
        "main.db-journal: grew, allocated",
        "main.db-journal: shrank; main.db: times",
    },
    ("ext4", "wal"): {"main.db-wal: grew, allocated"},
    ("xfs", "truncate"): {"main.db-journal: grew", "main.db-journal: shrank; main.db: times"},
    ("xfs", "wal"): {"main.db-wal: grew"},
    ("btrfs", "truncate"): {
        "main.db-journal: grew",
        "main.db-journal: allocated",
        "main.db-journal: shrank",
        "main.db: times",
    },
    ("btrfs", "wal"): {"main.db-wal: grew, allocated"},
    ("f2fs", "wal"): {"main.db-wal: grew, allocated"},
    ("nilfs2", "wal"): {"main.db-wal: grew, allocated"},
}


def test_a_commit_is_needed_for_what_sqlite_did(lab: Laboratory, tmp_path: Path) -> None:
    run = run_experiment(
        lab,
        tmp_path / "run",
        "journal-modes",
        *("workload=sqlite-insert", "sync_call=fdatasync", "transactions=13"),
        *("journal_mode=delete,truncate,wal", ALL_FILESYSTEMS),
    )
    for (filesystem, journal_mode), wanted in REASONS.items():
        reasons = bill_json(run, f"{filesystem}-{journal_mode}")["reasons"]
        assert {row["reason"] for row in reasons} == wanted, (filesystem, journal_mode)
    for filesystem in ("ext4", "xfs", "f2fs", "nilfs2"):
        found = " ".join(row["reason"] for row in bill_json(run, f"{filesystem}-delete")["reasons"])
        assert "main.db-journal: created, grew" in found, filesystem
        assert "main.db-journal: unlinked" in found, filesystem


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


def test_every_way_to_wait_is_a_cause(lab: Laboratory, tmp_path: Path) -> None:
    run = run_experiment(
        lab,
        tmp_path / "run",
        "sync-modes",
        *("filesystem=ext4", f"sync_mode={','.join(WAYS)}", "transactions=17"),
        *("access=random", "threads=1"),
    )
    for entry in run.cases:
        rows = bill_json(run, entry.case_id)["rows"]
        calls = {row["cause"].split(" of ")[0] for row in rows if row["block_type"] == "data"}
        assert calls == {WAYS[entry.case["sync_mode"]]}, entry.case_id


def test_compressed_extents_of_btrfs_have_their_file(lab: Laboratory, tmp_path: Path) -> None:
    settings = ("filesystem=btrfs", "mount_options=noatime,compress-force=zstd")
    _, bill = few_inserts(lab, tmp_path / "run", *settings, "journal_mode=wal")
    data = [row for row in bill["rows"] if row["block_type"] == "data"]
    assert {row["file"] for row in data} == {"/main.db-wal"}
    assert 0 < sum(row["bytes"] for row in data) < 8192
