"""Transactions over several databases in real guests: super-journals, and every setting at once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow.compute as pc

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case


def test_three_databases_are_joined_by_super_journals(
    cache: Cache, image: Image, tmp_path: Path
) -> None:
    run_case(cache, image, real_case(journal_mode="persist", databases=3), 0, tmp_path)
    capture = Capture.open(tmp_path)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    configuration = capture.manifest["configuration"]
    assert list(configuration["databases"]) == ["db2", "db3", "main"]
    assert configuration["atomic_across_databases"] is True
    transactions = capture.read("transactions")
    assert set(transactions["databases"].to_pylist()) == {3}
    assert transactions["sync_calls"].to_pylist()[-1] == 3 * 5 + 3
    runs = capture.read("page_runs")
    assert "unknown" not in runs["block_type"].to_pylist()
    written = runs.filter(pc.equal(runs["file_kind"], "super-journal"))["length_bytes"]
    files = capture.read("files")
    super_journals = files.filter(pc.equal(files["file_kind"], "super-journal"))
    # One each of 5 + 7 transactions, written once: inodes are used again, so each was unlinked.
    assert len(super_journals) == 12
    assert len(set(super_journals["inode"].to_pylist())) < 12
    assert sum(written.to_pylist()) == 12 * 4096


def test_every_setting_at_once(cache: Cache, image: Image, tmp_path: Path) -> None:
    case = real_case(
        filesystem="f2fs",
        workload="sqlite-delete",
        journal_mode="wal",
        databases=2,
        tables=3,
        statements=4,
        selects=5,
        interval_us=3_000,
        locking_mode="exclusive",
        secure_delete="on",
        auto_vacuum="full",
        temp_store="memory",
        checkpoint_mode="truncate",
        wal_autocheckpoint_pages=20,
    )
    run_case(cache, image, case, 0, tmp_path)
    capture = Capture.open(tmp_path)
    assert not capture.is_incomplete, capture.manifest["incomplete_reasons"]
    configuration = capture.manifest["configuration"]
    assert configuration["atomic_across_databases"] is False
    for database in ("main", "db2"):
        found = configuration["databases"][database]
        assert (found["locking_mode"], found["auto_vacuum"]) == ("exclusive", "1")
        assert (found["secure_delete"], found["temp_store"]) == ("1", "2")
    rows = capture.read("transactions").to_pylist()
    commits = [row for row in rows if row["phase"] == "commit"]
    assert len(commits) == 7
    for row, following in itertools.pairwise(commits):
        assert following["begin_ns"] - row["return_ns"] >= 3_000_000
    assert any(row["kind"] == "checkpoint" and row["databases"] == 2 for row in rows)
