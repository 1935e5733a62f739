"""Charts of one bar for each case: none is hidden, none left out, and risks are marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from jojlab.analysis.run.summary import summarise
from jojlab.report import case_charts
from jojlab.report.case_charts import throughput_chart
from jojlab.report.experiment import Axes, grouped_chart, grouped_rows
from jojlab.report.shared import vega
from tests.captures import make_run


def rates(*values: float) -> list[dict[str, Any]]:
    return [
        {"case": f"c{n}", "tps": v, "low": v, "high": v, "with checkpoints": v, "risk": ""}
        for n, v in enumerate(values)
    ]


def names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["case"] for row in rows))


@pytest.fixture(autouse=True)
def validate_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "VALIDATE", True)


def test_an_axis_that_would_hide_bars_is_logarithmic() -> None:
    assert vega.bar_axis([3, 60]) == ({"domain": [0, 60], "nice": True}, 0, "")
    scale, base, suffix = vega.bar_axis([3, 61])
    assert scale == {"type": "log", "domain": [1, 61], "nice": False}
    assert (base, suffix) == (1, " (log)")
    assert vega.bar_axis([1, 61]).base == 0.1  # the least has a bar, too
    assert vega.bar_axis([]).base == 0
    rows = rates(1, 7000)
    spec = json.dumps(throughput_chart(rows, names(rows), "per second"))
    assert "per second (log)" in spec


def test_a_case_at_risk_is_hatched_and_one_without_figures_says_why() -> None:
    rows = rates(5, 6)
    rows[1]["risk"] = "last commits"
    rows.append({"case": "c2", "absent": "skipped", "reason": "it cannot"})
    spec = throughput_chart(rows, names(rows), "per second")
    [hatch] = [layer for layer in spec["layer"] if layer["mark"].get("color") == vega.HATCH]
    assert hatch["transform"] == [{"filter": "datum.risk"}]
    drawn = vl_convert.vegalite_to_svg(spec)
    assert ">skipped</text>" in drawn
    assert ">c2</text>" in drawn
    assert drawn.count(vega.HATCH) == 1


def test_groups_bars_and_panels_are_named_and_a_gap_has_its_mark() -> None:
    ends: dict[str, Any] = {"low": 1, "high": 1, "stated": None, "risk": ""}
    rows: list[dict[str, Any]] = [
        {"panel": "p", "group": "ext4", "bar": "off", "case": "x", "value": 1, **ends},
        {"panel": "p", "group": "ext4", "bar": "on", "case": "y", "absent": "failed: it hung"},
    ]
    spec = grouped_chart(rows, "throughput_tps", Axes("filesystem", "secure_delete", "workload"))
    drawn = vl_convert.vegalite_to_svg(spec)
    for words in ("filesystem", "secure_delete", "workload p", "×"):
        assert f">{words}</text>" in drawn
    assert ">*</text>" not in drawn
    rows[0]["partial"] = "2 of 3 seeds"
    assert ">*</text>" in vl_convert.vegalite_to_svg(grouped_chart(rows, "throughput_tps"))


def test_a_case_that_lacks_a_seed_is_marked_in_every_chart(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2, 3], transactions=2)
    lacking = run.cases[1]
    del lacking.captures[1]
    run.mark(lacking.case_id, "failed", "seed 2: the guest panicked")
    summary = summarise(run)
    label = next(case.label for case in summary.cases if case.case_id == lacking.case_id)
    marked = f"{label} (2 of 3 seeds)"
    assert [name for name in case_charts.chart_labels(summary) if "seeds)" in name] == [marked]
    for rows in (
        case_charts.throughput_rows(summary),
        case_charts.latency_rows(summary),
        case_charts.histogram_rows(summary),
    ):
        names = {row["case"] for row in rows}
        assert marked in names
        assert label not in names
    [part] = summary.parts
    asked = {"figure": "throughput_tps", "bars": "journal_mode"}
    found = {row["case"]: row.get("partial") for row in grouped_rows(part, summary, asked)}
    assert found[label] == "2 of 3 seeds"
    assert not any(partial for case, partial in found.items() if case != label)
