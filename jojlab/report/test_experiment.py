"""Grouped bars, with panels and without, and the first screen of a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.study.parts import PartVerdict, Verdicts
from jojlab.report.experiment import fit_words, grouped_chart, grouped_rows
from jojlab.report.shared.template import render
from tests.captures import make_run


def row(panel: str, bar: str, value: float) -> dict[str, Any]:
    ends = {"low": value, "high": value, "stated": None}
    return {"panel": panel, "group": "ext4", "bar": bar, "case": bar, "value": value, **ends}


@pytest.mark.parametrize(("panels", "titles"), [(["a", "b"], ["a", "b"]), ([""], [None])])
def test_a_panel_has_a_title_if_it_has_a_name(panels: list[str], titles: list[str | None]) -> None:
    bars = [row(panel, bar, 3.0) for panel in panels for bar in ("stock", "all")]
    chart = grouped_chart(bars, "throughput_tps")
    assert [panel.get("title") for panel in chart["hconcat"]] == titles


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        ("throughput_tps", "transactions per second"),
        ("latency_ns_p50", "ms"),
        ("bytes_per_commit", "KiB"),
        ("dispatch_cpu_percent", "%"),
    ],
)
def test_an_axis_has_a_unit(figure: str, title: str) -> None:
    chart = grouped_chart([row("", "stock", 3.0)], figure)
    assert chart["hconcat"][0]["layer"][0]["encoding"]["y"]["title"] == title


def test_ours_and_theirs_are_in_one_unit(tmp_path: Path) -> None:
    entry = {"source": "s", "place": "p", "figure": "bytes_per_commit", "value": 70, "unit": "KiB",
             "case": {"journal_mode": "truncate"}}  # fmt: skip
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    summary = summarise(replace(run, experiment={**run.experiment, "published": [entry]}))
    found = grouped_rows(
        summary.parts[0], summary, {"figure": entry["figure"], "groups": "journal_mode"}
    )
    assert [(r.get("value"), r.get("stated")) for r in found] == [
        (70, 70),
        (30, None),
        (None, None),
    ]
    # The case that was skipped has a mark that says so.
    assert found[2]["absent"] == "skipped: journal_mode off keeps no transaction"


@pytest.mark.parametrize(("names", "headings"), [([], 1), ([("slow", "a disk of 2012")], 2)])
def test_notes_have_a_heading_once(names: list[tuple[str, str]], headings: int) -> None:
    page = render("report/figure.html", charts={"drawn": [], "note": ""}, names=names, notes=["a"])
    assert page.count("Notes</h") == headings


def test_a_study_opens_with_the_answer_as_a_case_does() -> None:
    empty: dict[str, list[str]] = {"columns": [], "parts": [], "notes": []}
    page = render("report/verdict.html", lines=["10 of 17"], fits=["near"], **empty)
    assert "<p>10 of 17</p>" in page.split('class="answer"')[1].split("</div>")[0]
    assert page.index("10 of 17") < page.index("near")


def test_the_fit_of_a_study_is_told_for_each_software() -> None:
    whole = PartVerdict("", orderings=17, reproduced=10, errors=(0.05, -0.2))
    told = fit_words(Verdicts("2012", (), whole, (), missing=4))
    near = "1 of 2 predictions is within 10 %; 4 numbers of the paper could not be had."
    assert told == f"Software of 2012: {near}"
