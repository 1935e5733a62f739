from pathlib import Path

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.study.parts import case_labels
from jojlab.trace.run_folder import CaseEntry, RunFolder


def test_labels_are_the_fields_that_the_experiment_varies() -> None:
    cases = [
        CaseEntry("wal-insert", {"fs": "ext4", "workload": "insert", "rows": 0, "mode": "wal"}),
        CaseEntry("wal-update", {"fs": "ext4", "workload": "update", "rows": 9, "mode": "wal"}),
    ]
    assert list(case_labels(cases, ["mode", "workload"]).values()) == ["insert", "update"]
    assert list(case_labels(cases).values()) == ["insert · 0", "update · 9"]
    assert list(case_labels(cases, ["mode"]).values()) == ["wal-insert", "wal-update"]


def test_a_case_that_was_not_reached_says_so(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", {}), ("b", {})], fingerprint={}
    )
    run.mark("b", "failed", "seed 1: it hung")
    assert [case.reason for case in summarise(run).cases] == [
        "the run ended before it",
        "seed 1: it hung",
    ]
