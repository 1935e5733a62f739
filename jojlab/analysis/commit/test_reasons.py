"""Tests of the reasons of commits, and of the journal's copies."""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.commit.bill import bill_json, commit_bills
from jojlab.report.bill import journal_sentences, reason_sentences
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of

KIB = 1024


def test_reasons_are_told_by_call_and_add_up(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "truncate"}, 1)
    db, journal = builder.file("/main.db", "db"), builder.file("/main.db-journal", "db-journal")

    def body() -> None:
        log = [("fs-journal", "copy", None, 4 * KIB)]
        builder.request([("data", "", db, 8 * KIB)], asker=("fsync", db))
        builder.request(log, asker=("fsync", journal), reason="main.db-journal: created, grew")
        builder.request(log, asker=("fsync", journal), reason="main.db-journal: created, grew")
        builder.request(log, asker=("fsync", db), reason="main.db-mj0A1B2C9FF: unlinked")
        builder.request(log, submitter_comm="jbd2/sda-8", reason="unknown")
        builder.request([("fs-metadata", "inode-table", None, 4 * KIB)])  # carries no changes

    builder.transaction(body)
    builder.transaction(body)
    run = run_of(tmp_path, builder)
    bill = commit_bills(Dataset.from_runs(run))["a"]
    found = [(row["cause"], row["reason"], row["bytes"]) for row in bill_json(bill)["reasons"]]
    assert found == [
        ("fsync of main.db-journal", "main.db-journal: created, grew", 8 * KIB),
        ("by jbd2/sda-8", "unknown", 4 * KIB),
        ("fsync of main.db", "main.db-mj*: unlinked", 4 * KIB),
    ]
    assert list(reason_sentences(bill, "commit")) == [
        "16 KiB of fs-journal: 8 KiB forced by fsync of main.db-journal (created, grew), "
        "4 KiB by jbd2/sda-8 (unknown), 4 KiB forced by fsync of main.db (main.db-mj*: unlinked)"
    ]
    assert list(reason_sentences(bill, "deferred")) == []


JOURNAL_KIB = 1024


def test_copies_and_shared_commits_are_told(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "truncate"}, 1)
    db = builder.file("/main.db", "db")

    def body() -> None:
        log = [("fs-journal", "copy", None, 4 * JOURNAL_KIB)] * 3
        askers = "3 of sqlite3, 1 of sync"
        builder.request(log, asker=("fsync", db), asker_count=4, askers=askers)
        homes = ("inodes 17..32", "inodes 17..32", "block-bitmap")
        for run, home in zip(builder.tables["page_runs"][-3:], homes, strict=True):
            run["home"] = home
        builder.request([("data", "", db, 8 * JOURNAL_KIB)], asker=("fsync", db))

    builder.transaction(body)
    builder.transaction(body)
    run = run_of(tmp_path, builder)
    bill = commit_bills(Dataset.from_runs(run))["a"]
    told = bill_json(bill)
    assert [(row["home"], row["bytes"]) for row in told["journal_copies"]] == [
        ("inodes 17..32", 16 * JOURNAL_KIB),
        ("block-bitmap", 8 * JOURNAL_KIB),
    ]
    [shared] = told["shared"]
    assert (shared["askers"], shared["requests"]) == ("3 of sqlite3, 1 of sync", 2)
    assert shared["bytes"] == 24 * JOURNAL_KIB
    assert list(journal_sentences(bill, "commit")) == [
        "copies in the journal: 8 KiB of inodes 17..32, 4 KiB of block-bitmap",
        "12 KiB of fs-journal served several calls at once: 3 of sqlite3, 1 of sync",
    ]
    assert list(journal_sentences(bill, "deferred")) == []
