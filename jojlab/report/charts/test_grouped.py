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
