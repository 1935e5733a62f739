import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.analysis.run.compare import compare
from jojlab.analysis.run.pivot import pivot
from jojlab.analysis.run.risks import hazards
from jojlab.analysis.run.summary import RunSummary, summarise, summary_json
from jojlab.report.bill import print_bill
from jojlab.report.comparison import comparison_lines, print_comparison
from jojlab.report.shared.console import QuietConsole, print_rows, terminal
from jojlab.report.shared.short_answer import duration
from jojlab.report.summary import print_case, print_pivot, print_summary
from jojlab.trace.run_folder import CaseEntry
from tests.captures import make_run

WAL = "filesystem=ext4,journal_mode=wal"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    folder = tmp_path_factory.mktemp("terminal") / "run"
    return summarise(make_run(folder, seeds=[1], transactions=20))


def lines(printed: io.StringIO) -> list[str]:
    return [line.rstrip() for line in printed.getvalue().splitlines()]


def console(width: int = 200) -> tuple[QuietConsole, io.StringIO]:
    printed = io.StringIO()
    return QuietConsole(file=printed, width=width, highlight=False), printed


def test_the_bill_of_a_wal_commit(summary: RunSummary) -> None:
    out, printed = console()
    bill = summary.only(WAL).cases[0].bill
    assert bill
    print_bill(out, bill)
    # 20 commits, two checkpoints of 12 KiB, one block of 4 KiB at the end.
    first, later, *table = lines(printed)
    assert first.startswith("one commit: 3.25 requests (0.1 of them flushes), 29.4 KiB, p50 ")
    assert later == (
        "deferred of it, to checkpoints and to the sync at the end: 0.25 requests, including 0.1 "
        "flushes, and 1.4 KiB (4.8 %)"
    )
    cells = [re.split(r"  +", line) for line in table]
    assert cells == [
        ["block type", "file kind", "file", "cause", "requests", "KiB", "share"],
        ["fs-journal", "none", "fdatasync of test.db-wal", "2", "20", "68.0 %"],
        ["data", "wal", "/test.db-wal", "fdatasync of test.db-wal", "1", "8", "27.2 %"],
        ["total", "3", "28"],
        ["deferred"],
        ["data", "db", "/test.db", "fdatasync of test.db", "0.1", "1.2", "4.1 %"],
        ["fs-metadata", "none", "syncfs", "0.05", "0.2", "0.7 %"],
        ["flush", "db", "fdatasync of test.db", "0.1", "0", "0.0 %"],
        ["total", "0.25", "1.4"],
    ]


def test_every_case_has_a_line_with_what_answers_most(summary: RunSummary) -> None:
    out, printed = console()
    print_summary(out, summary)
    shown = lines(printed)
    head = shown.index("") + 1
    assert shown[head].split() == ["journal_", "commit", "times", "as"]
    assert shown[head + 1].split() == ["mode", "p50", "p99", "fast", "KiB", "flushes", "durability"]
    rows = [line.split() for line in shown[head + 2 : head + 5]]
    assert rows[0][0] == "truncate"
    assert rows[0][5:] == ["1", "68.2", "2", "not", "tested"]
    assert rows[1][0] == "wal"
    assert rows[1][6:] == ["29.4", "0.100", "not", "tested"]
    assert rows[2] == ["off", "skipped", *"––––"]
    assert "What does one commit cost, by filesystem and journal mode?" in shown
    assert shown[-1] == "skipped journal_mode off: journal_mode off keeps no transaction"


@pytest.mark.parametrize("width", [50, 80, 100, 160])
def test_no_case_has_two_rows_and_none_is_wider_than_the_terminal(
    summary: RunSummary, width: int
) -> None:
    out, printed = console(width)
    print_summary(out, summary)
    assert max(map(len, lines(printed))) <= width
    assert sum("68.2" in line and "not" in line for line in lines(printed)) == 1


def test_all_figures_are_shown_on_request(summary: RunSummary) -> None:
    out, printed = console()
    print_summary(out, summary, figures=True)
    shown = lines(printed)
    assert "paying for a checkpoint: of 2 checkpoints a capture; p99 of few is the longest" in shown
    [row] = [line for line in shown if line.startswith("truncate ")]
    assert "44 KiB" in row


@pytest.mark.parametrize("width", [40, 10_000])
def test_notes_stand_below_the_question_in_lines_that_can_be_read(
    summary: RunSummary, width: int
) -> None:
    words = [f"word{number}" for number in range(60)]
    noted = {**summary.experiment, "notes": [" ".join(words), "the [last]"]}
    printed = io.StringIO()
    console = QuietConsole(file=printed, width=width, highlight=False)
    print_summary(console, replace(summary, experiment=noted))
    told = printed.getvalue()
    told = told[told.index("- word") : told.index("the [last]\n")]
    assert told.split() == ["-", *words, "-"]
    assert max(map(len, told.splitlines())) in range(min(width, 100) - 10, min(width, 100) + 1)


def test_notes_of_several_experiments_stand_with_each(summary: RunSummary) -> None:
    out, printed = console()
    each = [replace(summary.parts[0], name=name, notes=(f"note {name}",)) for name in ("a", "b")]
    composed = {"parts": [{}, {}], "notes": ["of all"]}
    whole = replace(summary, experiment=composed, parts=tuple(each))
    print_summary(out, whole)
    told = [line for line in lines(printed) if line.startswith(("- ", "a:", "b:"))]
    assert [line[:8] for line in told] == [f"a: {each[0].question}"[:8], "- note a",
                                           f"b: {each[1].question}"[:8], "- note b",
                                           "- of all"]  # fmt: skip
    found = summary_json(whole)
    assert found["notes"] == ["of all"]
    assert [part["notes"] for part in found["parts"]] == [["note a"], ["note b"]]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_overview_is_split_on_a_narrow_terminal(summary: RunSummary, width: int) -> None:
    whole, wide = console()
    print_summary(whole, summary, figures=True)
    printed = io.StringIO()
    narrow = QuietConsole(file=printed, width=width, highlight=False)
    print_summary(narrow, summary, figures=True)
    assert "…" not in printed.getvalue()
    assert max(map(len, lines(printed))) <= width
    rows = [
        [line.split(None, 1)[1] for line in lines(text) if line.startswith("truncate ")]
        for text in (wide, printed)
    ]
    assert len(rows[0]) == 1 < len(rows[1])
    assert rows[0][0].split() == " ".join(rows[1]).split()


def test_words_that_are_wrapped_keep_every_letter() -> None:
    printed = io.StringIO()
    narrow = QuietConsole(file=printed, width=20, highlight=False)
    print_rows(narrow, ["text", "n"], [["x" * 50, 123456789]])
    assert printed.getvalue().count("x") == 51
    assert "123456789" in printed.getvalue()


def test_brackets_in_names_are_no_markup() -> None:
    out, printed = console()
    print_rows(out, ["[bold]a", "n"], [["[red]x", 1], [None, 2]])
    assert lines(printed) == ["[bold]a  n", "[red]x   1", "·        2"]


def test_piped_text_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(terminal(), ["text"], [["x" * 500]])
    assert "x" * 500 in capsys.readouterr().out


@pytest.mark.parametrize("clock", ["virtual", "wall"])
def test_fingerprints_are_compared_of_runs_by_one_clock(summary: RunSummary, clock: str) -> None:
    out, printed = console()
    other = replace(summary, clocks=(clock,), fingerprint={"kernel": "another"})
    print_comparison(out, compare(summary, other))
    said = printed.getvalue()
    assert ("not comparable" in said) == (clock == "wall")
    assert ("kernel: 6.1.0-test → another" in said) == (clock == "virtual")


def test_a_comparison_says_first_what_a_commit_costs_now(summary: RunSummary) -> None:
    assert comparison_lines(compare(summary, summary)) == (
        "All 72 figures of both runs are equal.",
    )
    first, *others = summary.cases
    p50_ns = first.figures.median["latency_ns_p50"]
    median = {**first.figures.median, "latency_ns_p50": 2 * p50_ns}
    dearer = replace(first, figures=replace(first.figures, median=median))
    told = comparison_lines(compare(summary, replace(summary, cases=(dearer, *others))))
    assert told[0].startswith("1 of 72 figures changed")
    assert told[1] == (
        f"One commit takes {duration(2 * p50_ns)}, before {duration(p50_ns)} (+100 %)."
    )
    assert told[2] == "What moved them, the runs do not tell."


def test_a_case_at_risk_is_marked_in_its_row_and_below(summary: RunSummary) -> None:
    out, printed = console(width=240)
    risky = hazards({"journal_mode": "wal", "synchronous": "normal", "databases": 2})
    cases = tuple(
        replace(case, hazards=risky if case.label == "wal" else ()) for case in summary.cases
    )
    print_summary(out, replace(summary, cases=cases))
    shown = lines(printed)
    [line] = [line for line in shown if line.startswith("! ") and "not tested" in line]
    assert line.split()[1] == "wal"
    assert any(line.startswith("  truncate ") for line in shown)
    told = [line for line in shown if line.startswith("! at risk")]
    assert len(told) == 2
    assert all(line.endswith("(wal)") for line in told)
    out, printed = console()
    print_case(out, cases[1])
    assert [line for line in lines(printed) if "only some of them" in line]


def test_cases_that_were_not_reached_are_told_once_and_not_by_the_thousand(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    further = [CaseEntry(f"further-{i}", {"transactions": i}) for i in range(1, 31)]
    short, printed = console()
    print_summary(short, summarise(replace(run, cases=[*run.cases, *further])))
    told = [line for line in lines(printed) if line.startswith("pending ")]
    assert len(told) == 11
    assert told[0].startswith("pending")
    assert "the run ended before it" in told[0]
    assert told[-1] == "pending 20 more: joj show --json names them"


def test_a_comparison_does_not_name_cases_by_the_thousand(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=20)
    whole = summarise(run, figures_only=True)
    run.cases += [CaseEntry(f"further-{number}", dict(run.cases[0].case)) for number in range(30)]
    out, printed = console()
    print_comparison(out, compare(whole, summarise(run, figures_only=True)))
    told = [line for line in lines(printed) if "in the second run" in line]
    assert told[-1] == "incomplete in the second run 20 more: joj diff --json names them"
    assert len(told) == 11


def test_a_pivot_marks_what_is_at_risk(summary: RunSummary) -> None:
    out, printed = console()
    risky = hazards({"journal_mode": "wal", "synchronous": "normal"})
    cases = tuple(
        replace(case, hazards=risky if case.label == "wal" else ()) for case in summary.cases
    )
    whole = replace(summary, cases=cases)
    print_pivot(out, pivot(whole, ["filesystem", "journal_mode"], "bytes_per_commit"), whole)
    shown = lines(printed)
    assert shown[2].split() == ["ext4", "68.2", "KiB", "29.4", "KiB", "!"]
    assert shown[3].startswith("! at risk WAL with synchronous NORMAL")
    assert "(wal)" in shown[3]
