"""The short answer of self-tests: what was compared, what was not, and what is not right."""

from __future__ import annotations

from jojlab.report.attribution import short_lines
from jojlab.verify.compare import COLUMNS, Addresses, Verdict

CLEAN = {name: 0 for name in COLUMNS if name != "filesystem" and not name.startswith("address")}
CLEAN |= {"checked_bytes": 4096, "checked_requests": 3}


def test_the_answer_calls_only_compared_bytes_right() -> None:
    missing = Addresses(missing="no tool lists them")
    assert short_lines([Verdict("xfs", CLEAN)], []) == (
        "Right in all steps that were done: xfs.",
        "Of 4 KiB compared, each byte has its file; of 3 requests, each has its sync.",
    )
    alone = Verdict("nilfs2", {**CLEAN, "checked_requests": 0}, addresses=missing)
    assert short_lines([alone], []) == (
        "Right in all steps that were done: nilfs2.",
        "Of 4 KiB compared, each byte has its file.",
        "Not compared: whose sync a request is, on nilfs2; the place on the disk, on nilfs2.",
    )


def test_the_answer_names_the_faults_of_each_filesystem() -> None:
    wrong = Verdict("ext4", {**CLEAN, "misattributed_bytes": 512, "lost_events": 3})
    lines = short_lines([Verdict("xfs", CLEAN), wrong], ["f2fs"])
    assert "ext4: 512 B of the wrong file or place; 3 events lost." in lines
    assert lines[-1] == "Not tested: f2fs."
    reason = Verdict("ext4", CLEAN, reasons=("1 flush",))
    assert short_lines([reason], []) == ("ext4: incomplete, see below.",)
    assert short_lines([], []) == ("Nothing was tested.",)
