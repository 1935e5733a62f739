from pathlib import Path

from jojlab.analysis.commit.bill import bill_json, commit_bills
from jojlab.report.bill import journal_sentences
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of

KIB = 1024


def test_copies_and_shared_commits_are_told(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "truncate"}, 1)
    db = builder.file("/main.db", "db")

    def body() -> None:
        log = [("fs-journal", "copy", None, 4 * KIB)] * 3
        askers = "3 of sqlite3, 1 of sync"
        builder.request(log, asker=("fsync", db), asker_count=4, askers=askers)
        homes = ("inodes 17..32", "inodes 17..32", "block-bitmap")
        for run, home in zip(builder.tables["page_runs"][-3:], homes, strict=True):
            run["home"] = home
        builder.request([("data", "", db, 8 * KIB)], asker=("fsync", db))

    builder.transaction(body)
    builder.transaction(body)
    run = run_of(tmp_path, builder)
    bill = commit_bills(Dataset.of(run))["a"]
    told = bill_json(bill)
    assert [(row["home"], row["bytes"]) for row in told["journal_copies"]] == [
        ("inodes 17..32", 16 * KIB),
        ("block-bitmap", 8 * KIB),
    ]
    [shared] = told["shared"]
    assert (shared["askers"], shared["requests"]) == ("3 of sqlite3, 1 of sync", 2)
    assert shared["bytes"] == 24 * KIB
    assert list(journal_sentences(bill, "commit")) == [
        "copies in the journal: 8 KiB of inodes 17..32, 4 KiB of block-bitmap",
        "12 KiB of fs-journal served several calls at once: 3 of sqlite3, 1 of sync",
    ]
    assert list(journal_sentences(bill, "deferred")) == []
