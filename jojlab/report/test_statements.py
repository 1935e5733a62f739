"""A study that is told in two columns: the software of its time beside today's."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.analysis.study.published import Place, statements
from jojlab.model.hazards import WAL_NORMAL, Harm, Hazard
from jojlab.report.answer import answer_lines
from jojlab.report.page import report_html
from jojlab.report.shared.console import QuietConsole
from jojlab.report.summary import print_summary
from tests.captures import make_run

ENTRIES: list[dict[str, Any]] = [
    {
        "says": "WAL is the best",
        "source": "ATC'13",
        "place": "section 6.2",
        "figure": "throughput_tps",
        "holds": "above",
        "advice": "WAL",
        "case": {"journal_mode": "wal"},
        "against": {"journal_mode": "truncate"},
        "explanation": "a reason of today.",
    },
    {
        "says": "WAL, inserts",
        "source": "ATC'13",
        "place": "table 2",
        "figure": "throughput_tps",
        "value": 100,
        "case": {"journal_mode": "wal"},
        "study_explanation": "a reason of then.",
    },
]
TPS = {"2012": {"truncate": 40, "wal": 150}, "today": {"truncate": 40, "wal": 30}}


@pytest.fixture
def study(tmp_path: Path) -> RunSummary:
    """Return a study of one part, of which each case was measured with both."""
    summary = summarise(make_run(tmp_path / "run", seeds=[1], transactions=2))
    [part] = summary.parts
    cases = [case for case in summary.cases if case.figures.seeds]
    places = [
        Place(
            part.labels[case.case_id],
            {**case.case, "software": software},
            CaseFigures(median={"throughput_tps": tps[str(case.case["journal_mode"])]}),
        )
        for software, tps in TPS.items()
        for case in cases
    ]
    found = replace(part, statements=statements(ENTRIES, places, ["software", "journal_mode"]))
    risky = tuple(
        replace(case, hazards=(Hazard(Harm.COMMITS, WAL_NORMAL),))
        if case.case.get("journal_mode") == "wal"
        else case
        for case in summary.cases
    )
    experiment = {**summary.experiment, "parts": [{}]}
    return replace(summary, experiment=experiment, parts=(found,), cases=risky)


def test_the_answer_counts_each_software_and_its_advice(study: RunSummary) -> None:
    """Both counts, what the advice gains with each, and what it risks today."""
    told = "1 published ordering reproduced; 1 prediction"
    assert answer_lines(study)[:4] == (
        f"Software of 2012: 1 of {told}, median error 50 %.",
        f"Software of today: 0 of {told}, median error 70 %.",
        "In 2012: WAL 3.75.",
        "Not faster in every case today: WAL; dangerous: WAL: last commits.",
    )


def test_the_answer_of_one_experiment_counts_what_was_printed(study: RunSummary) -> None:
    """Not of several experiments: its own lines come first, then what became of the numbers."""
    alone = replace(study, experiment={**study.experiment, "parts": []})
    assert "Software of 2012: 1 of 1 published ordering reproduced" in answer_lines(alone)[1]


def test_terminal_and_page_have_a_column_for_each_software(study: RunSummary) -> None:
    """Each statement once, with both results, and the reason where one is another."""
    page = report_html(study, "run")
    for words in ("software of 2012", "software of today", "today: a reason of today."):
        assert words in page
    assert page.count(">WAL is the best<") == 1
    stream = StringIO()
    print_summary(QuietConsole(file=stream, width=200, highlight=False), study)
    assert "not reproduced" in stream.getvalue()
    assert "WAL, inserts: 2012: a reason of then." in stream.getvalue()
