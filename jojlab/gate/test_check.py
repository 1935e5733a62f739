"""Budgets against captures whose sums are known (tests/captures.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.foundation.errors import UseError
from jojlab.gate.budgets import accept, read_accepted, read_budgets, write_accepted
from jojlab.gate.check import LimitOutcome, LimitVerdict, check
from jojlab.model.hazards import Doubt, Unknown
from jojlab.report import gate
from jojlab.report.gate import junit, markdown
from tests.captures import CaptureBuilder, make_run, run_of, truncate_capture, wal_capture
from tests.power_cut_answers import cut, states

WAL = "filesystem=ext4,journal_mode=wal"
EXT4_WAL = {"filesystem": "ext4", "journal_mode": "wal"}


def budgets_of(folder: Path, *entries: str) -> Path:
    path = folder / "budgets.toml"
    path.write_text("\n".join(f"[[budget]]\n{entry}" for entry in entries))
    return path


def verdicts_of(folder: Path, summary: RunSummary, *entries: str) -> tuple[LimitVerdict, ...]:
    asked = read_budgets(budgets_of(folder, *entries))
    return check(summary, asked.budgets, read_accepted(asked.accepted_path))


def summary_of_one(folder: Path, builder: CaptureBuilder) -> RunSummary:
    return summarise(run_of(folder, builder))


def test_a_budget_chooses_cases_by_their_fields(tmp_path: Path) -> None:
    summary = summarise(make_run(tmp_path / "run", seeds=[1], transactions=10))
    verdicts = verdicts_of(
        tmp_path,
        summary,
        'case = { journal_mode = "wal" }\nlimits = ["bytes_per_commit <= 30 KiB"]',
        'limits = ["flushes_per_commit <= 1", "latency_ns_p99 <= 1 s"]',
    )
    assert [(each.label, each.outcome) for each in verdicts] == [
        ("wal", LimitOutcome.KEPT),
        ("truncate", LimitOutcome.BROKEN),
        ("truncate", LimitOutcome.KEPT),
        ("wal", LimitOutcome.KEPT),
        ("wal", LimitOutcome.KEPT),
    ]
    with pytest.raises(UseError, match=r"number 1: case = .*is no case of this run"):
        verdicts_of(
            tmp_path,
            summary,
            'case = { filesystem = "xfs" }\nlimits = ["requests_per_commit <= 1"]',
        )


def test_the_lines_that_grew_are_told_against_the_accepted_bill(tmp_path: Path) -> None:
    budget = 'limits = ["bytes_per_commit <= 30 KiB", "requests_per_commit <= 10"]'
    before = summary_of_one(tmp_path / "before", wal_capture(EXT4_WAL, 1, 10))
    assert {each.outcome for each in verdicts_of(tmp_path, before, budget)} == {LimitOutcome.KEPT}
    write_accepted(tmp_path / "budgets.accepted.json", accept(before))
    case = {"filesystem": "ext4", "journal_mode": "truncate"}
    size, requests = verdicts_of(
        tmp_path, summary_of_one(tmp_path / "after", truncate_capture(case, 1, 10)), budget
    )
    assert requests.outcome is LimitOutcome.KEPT
    assert (requests.before, requests.value) == (3.3, 9.1)
    # Of ten commits, with a block that is written back at the end, and in WAL mode a checkpoint.
    assert size.outcome is LimitOutcome.BROKEN
    assert (size.before, size.value) == (28 * 1024 + 1638.4, 68 * 1024 + 409.6)
    assert gate.details(size) == [
        "changed: journal_mode: wal → truncate",
        "new line: fs-journal, fdatasync of test.db-journal: 4 requests, 44 KiB",
        "new line: data, /test.db-journal, fdatasync of test.db-journal: 2 requests, 16 KiB",
        "new line: data, /test.db, fdatasync of test.db: 1 request, 8 KiB",
    ]


def test_deferred_bytes_break_a_limit_too(tmp_path: Path) -> None:
    """Commits that send nothing while they run, as in WAL mode without a sync of their own."""
    builder = CaptureBuilder(EXT4_WAL, 1)
    database = builder.file("/test.db", "db")
    for _ in range(10):
        builder.transaction(lambda: None)
    builder.phase = "checkpoint"
    builder.transaction(
        lambda: builder.request([("data", "", database, 350 * 1024)]), kind="checkpoint"
    )
    summary = summary_of_one(tmp_path, builder)
    (verdict,) = verdicts_of(tmp_path, summary, 'limits = ["bytes_per_commit <= 2 KiB"]')
    assert (verdict.outcome, verdict.value) == (LimitOutcome.BROKEN, 35 * 1024)
    assert gate.details(verdict) == ["dear line: deferred: data, /test.db, by joj-agent: "
                                     "0.1 requests, 35 KiB"]  # fmt: skip


@pytest.mark.parametrize("rollbacks", [0, 1])
def test_a_case_without_a_commit_keeps_no_limit(tmp_path: Path, rollbacks: int) -> None:
    builder = CaptureBuilder(EXT4_WAL, 1)
    for _ in range(rollbacks):
        builder.add_transaction("rollback", "rollback", 0, 5, 10)
    summary = summary_of_one(tmp_path, builder)
    (verdict,) = verdicts_of(tmp_path, summary, 'limits = ["bytes_per_commit <= 2 KiB"]')
    assert (verdict.outcome, verdict.why) == (LimitOutcome.NOT_MEASURED, "no commit was measured")


def test_a_broken_limit_without_accepted_bill_names_the_dearest_lines(tmp_path: Path) -> None:
    summary = summary_of_one(tmp_path, wal_capture(EXT4_WAL, 1, 10))
    (verdict,) = verdicts_of(tmp_path, summary, 'limits = ["bytes_per_commit <= 1 KiB"]')
    assert gate.details(verdict)[0] == (
        "dear line: fs-journal, fdatasync of test.db-wal: 2 requests, 20 KiB"
    )


def test_a_halved_batch_shows_by_the_row(tmp_path: Path) -> None:
    budget = 'limits = ["bytes_per_row <= 3 KiB", "bytes_per_commit <= 30 KiB"]'
    rows = {"statements": 10, "databases": 1}
    before = summary_of_one(tmp_path / "before", wal_capture({**EXT4_WAL, **rows}, 1, 10))
    write_accepted(tmp_path / "budgets.accepted.json", accept(before))
    halved = wal_capture({**EXT4_WAL, **rows, "statements": 5}, 1, 10)
    row, commit = verdicts_of(tmp_path, summary_of_one(tmp_path / "after", halved), budget)
    assert commit.outcome is LimitOutcome.KEPT
    assert row.outcome is LimitOutcome.BROKEN
    assert row.value == 2 * (row.before or 0)
    told = gate.details(row)
    assert told[0] == "changed: statements: 10 → 5"
    assert told[1].startswith("grown line: fs-journal, fdatasync of test.db-wal: 0.2 requests, 2 ")
    assert gate.details(replace(row, lines=row.lines[:1] * 4))[-1] == "1 more line"


def test_unmeasured_limits_are_not_called_kept(tmp_path: Path) -> None:
    builder = wal_capture(EXT4_WAL, 1, 10)
    builder.lost_events = 3
    entry = 'limits = ["bytes_per_commit <= 30 KiB", "bytes_per_row <= 1 B", "guarantee = durable"]'
    verdicts = verdicts_of(tmp_path, summary_of_one(tmp_path, builder), entry)
    assert [each.outcome for each in verdicts] == [LimitOutcome.NOT_MEASURED] * 3
    assert [each.why for each in verdicts] == [
        "the capture is incomplete",
        "how many rows a commit changes is not known",
        "the power was not cut",
    ]


def test_guarantees_are_held_against_power_cuts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    cut(run, WAL, states(harmless=40, lost=2))
    durable, consistent = verdicts_of(
        tmp_path,
        summarise(run),
        'case = { journal_mode = "wal" }\n'
        'limits = ["guarantee = durable", "guarantee = consistent"]',
    )
    assert (durable.outcome, consistent.outcome) == (LimitOutcome.BROKEN, LimitOutcome.KEPT)
    assert gate.measured_value(durable) == "40 kept, 2 lost of 42 states"
    assert "1 of 41 acknowledged commits lost" in gate.details(durable)[-1]


def test_the_power_cuts_of_a_replay_keep_no_commits(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    cut(run, WAL, states(harmless=40))
    summary = summarise(run)
    (wal,) = (each for each in summary.cases if each.durability)
    replayed = replace(wal, case={"workload": "replay", "filesystem": "ext4"})
    for unknown, kept in (
        ((Unknown(Doubt.NOT_SEEN),), LimitOutcome.NOT_MEASURED),
        ((), LimitOutcome.KEPT),
    ):
        case = replace(replayed, unknowns=unknown)
        (verdict,) = verdicts_of(
            tmp_path, replace(summary, cases=(case,)), 'limits = ["guarantee = durable"]'
        )
        assert verdict.outcome is kept
        assert ("judged by its syncs" in gate.headline(verdict)) == bool(unknown)


def test_the_forms_for_others_say_the_same(tmp_path: Path) -> None:
    summary = summarise(make_run(tmp_path / "run", seeds=[1], transactions=10))
    verdicts = verdicts_of(
        tmp_path, summary, 'limits = ["flushes_per_commit <= 1", "guarantee = durable"]'
    )
    suites = fromstring(junit(verdicts, "budgets.toml"))
    assert suites.attrib == {"name": "budgets.toml", "tests": "4", "failures": "1", "errors": "2"}
    failure = suites.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "broken: truncate: flushes_per_commit <= 1: 2"
    assert failure.text
    assert "dear line: flush" in failure.text
    text = markdown(verdicts, "budgets.toml")
    assert "| truncate | flushes\\_per\\_commit \\<= 1 | **broken** | 2 |  |" in text
    assert "**broken**: truncate: flushes\\_per\\_commit \\<= 1: 2\n" in text
    assert "- dear line: flush, fdatasync of test.db" in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "lacks budget"),
        ("budget = []", "no budget"),
        ("[[budget]]\nlimits = []", "has no limits"),
        ('[[budget]]\nlimit = ["flushes_per_commit <= 1"]', "lacks limits|has no key 'limit'"),
        ('[[budget]]\ncase = { x = 1 }\nlimits = ["flushes_per_commit <= 1"]', "x"),
        ('states = 0\n[[budget]]\nlimits = ["flushes_per_commit <= 1"]', "states cannot be 0"),
    ],
)
def test_slips_in_a_file_are_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text(text)
    with pytest.raises(UseError, match=told) as raised:
        read_budgets(path)
    assert str(path) in str(raised.value)


def test_a_damaged_accepted_bill_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.accepted.json"
    for content in ("{", '{"image": 3, "cases": {}}', '{"cases": {"a": {"lines": [{}]}}}'):
        path.write_text(content)
        with pytest.raises(UseError, match=r"b\.accepted\.json"):
            read_accepted(path)
