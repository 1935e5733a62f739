from pathlib import Path

from jojlab.analysis.run.summary import summarise, summary_json
from jojlab.analysis.study.parts import case_labels
from jojlab.trace.run_folder import CaseEntry, RunFolder
from tests.captures import make_run


def test_labels_are_the_fields_that_the_experiment_varies() -> None:
    cases = [
        CaseEntry("wal-insert", {"fs": "ext4", "workload": "insert", "rows": 0, "mode": "wal"}),
        CaseEntry("wal-update", {"fs": "ext4", "workload": "update", "rows": 9, "mode": "wal"}),
    ]
    assert list(case_labels(cases, ["mode", "workload"])[0].values()) == ["insert", "update"]
    assert list(case_labels(cases)[0].values()) == ["insert · rows 0", "update · rows 9"]
    assert list(case_labels(cases, ["mode"])[0].values()) == ["wal-insert", "wal-update"]


def test_a_case_that_was_not_reached_says_so(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", {}), ("b", {})], fingerprint={}
    )
    run.mark("b", "failed", "seed 1: it hung")
    assert [case.reason for case in summarise(run).cases] == [
        "the run ended before it",
        "seed 1: it hung",
    ]


def test_a_case_that_lacks_a_seed_is_marked_and_judged_by_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2, 3], transactions=2)
    run.experiment["published"] = [
        {"case": {"journal_mode": mode}, "figure": "bytes_per_commit", "value": 72, "source": "it",
         "place": "here"}
        for mode in ("wal", "truncate")
    ]  # fmt: skip
    lacking, whole = run.cases[1], run.cases[0]
    del lacking.captures[1]
    run.mark(lacking.case_id, "failed", "seed 2: the guest panicked")
    summary = summarise(run)
    by_id = {case.case_id: case for case in summary.cases}
    assert summary.partial(by_id[lacking.case_id]) == "2 of 3 seeds"
    assert summary.partial(by_id[whole.case_id]) == ""
    (part,) = summary.parts
    assert [found.verdict for found in part.statements] == ["not measured", ""]
    assert part.statements[0].points[0].label.endswith("not every seed was measured")
    (record,) = [c for c in summary_json(summary)["cases"] if c["case_id"] == lacking.case_id]
    assert (record["seeds"], record["missing_seeds"]) == ([1, 3], [2])
