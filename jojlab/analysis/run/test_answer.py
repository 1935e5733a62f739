from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.analysis.commit.bill import ReasonShare
from jojlab.analysis.commit.story import CommitTrace, TracedRun
from jojlab.analysis.run.answer import TimeShares, _journal_reason, answer, time_shares
from jojlab.analysis.run.risks import hazards
from jojlab.analysis.run.summary import summarise
from jojlab.experiment.cases import complete
from jojlab.model.field import Value
from jojlab.model.fields import BY_NAME, is_same_work
from tests.captures import make_run


def run_at(issue_ns: int, complete_ns: int | None, operation: str = "write") -> TracedRun:
    data = ("data", "", "db", "/main.db", "fsync of main.db", None, 0, "joj-agent", "", "")
    return TracedRun(1, issue_ns, issue_ns, complete_ns, 8, 4096, operation, False, False, *data)


def test_time_is_shared_once() -> None:
    runs = (
        run_at(10, 30),
        run_at(20, 40),  # beside the first
        run_at(50, 80, "flush"),
        run_at(70, 75),  # within a flush
        run_at(90, 130),  # goes on after the commit returned
        run_at(95, None),
    )
    shares = time_shares(CommitTrace("a", 1, 1, 100, "commit", runs))
    assert shares == TimeShares(flushing=0.3, moving=0.4, elsewhere=0.3)
    assert time_shares(CommitTrace("a", 1, 1, 0, "commit", ())) is None


def test_the_first_case_is_answered_and_compared_with_the_rest(tmp_path: Path) -> None:
    found = answer(summarise(make_run(tmp_path / "run", seeds=[1], transactions=5)))
    assert found
    assert found.case.case["journal_mode"] == "truncate"
    assert found.compared == 1
    assert [case.hazards for case in found.measured_cases] == [(), ()]
    assert sum(share.bytes for share in found.classes) == pytest.approx(
        found.case.figures.median["bytes_per_commit"]
    )
    assert found.classes[0].bytes == max(share.bytes for share in found.classes)
    [wal] = found.cheaper
    assert wal.case.case["journal_mode"] == "wal"
    ours, theirs = (c.figures.median["latency_ns_p50"] for c in (wal.case, found.case))
    assert wal.times == theirs / ours > 1


@pytest.mark.parametrize(("unknown_bytes", "is_known"), [(4096, True), (12288, False)])
def test_a_reason_is_given_where_most_of_the_journal_has_one(
    unknown_bytes: int, is_known: bool
) -> None:
    grown = ReasonShare("commit", "fs-journal", "fsync of main.db", "main.db: grew", 1, 8192)
    unknown = replace(grown, reason="unknown", bytes=unknown_bytes)
    assert _journal_reason([grown, unknown]) == (grown if is_known else None)


def test_means_are_fields_of_cases() -> None:
    allocators = {"ubi_allocator": "kmalloc", "ubifs_allocator": "vmalloc"}
    cases: tuple[dict[str, Value], ...] = (
        {"software": "today"}, {"workload": "file-write"}, {"filesystem": "ubifs", **allocators}
    )  # fmt: skip
    means = {name for name, field in BY_NAME.items() if not field.changes_work and "." not in name}
    assert set().union(*(complete(case) for case in cases)) >= means
    assert is_same_work(set(allocators))


def test_a_key_of_the_device_is_a_means_and_the_workload_none() -> None:
    assert is_same_work({"device.erase_ns"})
    assert not is_same_work({"value_bytes"})


def test_cheaper_cases_of_no_more_risk_come_first(tmp_path: Path) -> None:
    """The fastest of three cases is at risk: it stands last, and is said to risk more."""
    made = make_run(tmp_path / "run", seeds=[1], transactions=5)
    [truncate, wal, off] = made.cases
    safe = summarise(made)
    assert safe.cases[0].case_id == truncate.case_id
    faster = {name: value / 2 for name, value in safe.cases[1].figures.median.items()}
    risky = replace(
        safe.cases[1],
        case_id=off.case_id,
        case={**wal.case, "synchronous": "normal"},
        figures=replace(safe.cases[1].figures, median=faster),
        hazards=hazards({**wal.case, "synchronous": "normal"}),
    )
    found = answer(replace(safe, cases=(*safe.cases[:2], risky)))
    assert found
    assert [(each.case.case_id, each.is_riskier) for each in found.cheaper] == [
        (wal.case_id, False),
        (off.case_id, True),
    ]


@pytest.mark.parametrize("faster", ["fsync", "fdatasync"])
def test_a_tie_is_decided_by_the_other_regimes_and_not_by_noise(
    tmp_path: Path, faster: str
) -> None:
    """Two cases take nearly one time in new files; in old ones fdatasync is the faster."""
    summary = summarise(make_run(tmp_path / "run", seeds=[1], transactions=5))
    base, wal, *_ = summary.cases
    p50_ns = wal.figures.median["latency_ns_p50"]
    cases = [
        replace(
            wal,
            case_id=f"{call}-{regime}",
            case={**wal.case, "sync_call": call, "regime": regime},
            figures=replace(
                wal.figures, median={**wal.figures.median, "latency_ns_p50": times * p50_ns}
            ),
        )
        for call, old in (("fsync", 0.9), ("fdatasync", 0.5))
        for regime, times in (("fresh", 0.999 if call == faster else 1), ("steady", old))
    ]
    base = replace(base, case={**base.case, "regime": "fresh"})
    found = answer(replace(summary, cases=(base, *cases)))
    assert found
    assert found.cheaper[0].case.case_id == "fdatasync-fresh"
