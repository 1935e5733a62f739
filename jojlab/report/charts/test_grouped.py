"""Grouped bars: with panels and without."""

from __future__ import annotations

from typing import Any

import pytest

from jojlab.report.charts.grouped import grouped


def row(panel: str, bar: str, value: float) -> dict[str, Any]:
    ends = {"low": value, "high": value, "stated": None}
    return {"panel": panel, "group": "ext4", "bar": bar, "case": bar, "value": value, **ends}


@pytest.mark.parametrize(("panels", "titles"), [(["a", "b"], ["a", "b"]), ([""], [None])])
def test_a_panel_has_a_title_if_it_has_a_name(panels: list[str], titles: list[str | None]) -> None:
    rows = [row(panel, bar, 3.0) for panel in panels for bar in ("stock", "all")]
    chart = grouped(rows, "throughput_tps")
    assert [panel.get("title") for panel in chart["hconcat"]] == titles


@pytest.mark.parametrize(
    ("figure", "value", "shown", "title"),
    [
        ("throughput_tps", 39.0, 39.0, "transactions per second, without checkpoints"),
        ("latency_ns_p50", 2.5e6, 2.5, "BEGIN to return of COMMIT, p50 (ms)"),
        ("latency_ns_p50", 0, 0, "BEGIN to return of COMMIT, p50 (ns)"),
        ("bytes_per_commit", 8192, 8, "bytes of those requests, per commit (KiB)"),
    ],
)
def test_an_axis_says_its_unit(figure: str, value: float, shown: float, title: str) -> None:
    chart = grouped([row("", "stock", value) | {"stated": value}], figure)
    [drawn] = chart["datasets"]["rows0"]
    assert (drawn["value"], drawn["low"], drawn["high"], drawn["stated"]) == (shown,) * 4
    [panel] = chart["hconcat"]
    assert panel["layer"][0]["encoding"]["y"]["title"] == title
