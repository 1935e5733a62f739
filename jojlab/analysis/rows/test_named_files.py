"""Numbered names stand as one, of files and in reasons; others are left alone."""

from pathlib import Path

from jojlab.analysis.commit.bill import commit_bills
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of

NAMES = {
    "/main.db-mj0123AB9CD": "/main.db-mj*",
    "/directory/file-0000017": "/directory/file-*",
    # Of others' programs.
    "/file-17": "/file-17",
    "/profile-0000017": "/profile-0000017",
    "/file-00000171": "/file-00000171",
    "/main.db-mjolnir": "/main.db-mjolnir",
}
REASONS = {
    "main.db-mj0123AB9CD: unlinked": "main.db-mj*: unlinked",
    "renamed-0000017: renamed; file-0000017: replaced": "renamed-*: renamed; file-*: replaced",
    "profile-0000017: grew": "profile-0000017: grew",
}


def test_numbered_names_are_one(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)

    def body() -> None:
        for name in NAMES:
            builder.request([("data", "", builder.file(name, "other"), 4096)])
        for reason in REASONS:
            builder.request([("fs-journal", "", None, 4096)], reason=reason)

    builder.transaction(body)
    bill = commit_bills(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert {row.file for row in bill.rows} == {*NAMES.values(), ""}
    assert {share.reason for share in bill.reasons} == set(REASONS.values())
