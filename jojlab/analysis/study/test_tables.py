"""Printed tables beside ours: which cases a cell compares, and when a change is none."""

from __future__ import annotations

from typing import Any

import pytest

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.study.published import Place
from jojlab.analysis.study.tables import tables

ENTRY: dict[str, Any] = {
    "source": "S",
    "place": "table 1",
    "title": "T",
    "figure": "throughput_tps",
    "against": {"ubi_allocator": "vmalloc"},
    "columns": [{"name": "read", "case": {"workload": "file-read"}}],
    "group": [
        {
            "name": "case 3",
            "case": {"ubi_allocator": "kmalloc"},
            "rows": [
                {"name": "4K", "case": {"record_bytes": 4096}, "values": [11.0]},
                {"name": "8K", "case": {"record_bytes": 8192}, "values": [-1.0]},
            ],
        }
    ],
}


def place(allocator: str, record_bytes: int, *values: float, exclusion_reason: str = "") -> Place:
    low, middle, high = values
    return Place(
        "",
        {"workload": "file-read", "ubi_allocator": allocator, "record_bytes": record_bytes},
        CaseFigures((1, 2, 3), {"throughput_tps": middle}, {"throughput_tps": (low, high)}),
        exclusion_reason,
    )


PLACES = [
    place("vmalloc", 4096, 99, 100, 102),
    place("kmalloc", 4096, 109, 110, 111),
    place("vmalloc", 8192, 99, 100, 102),
    place("kmalloc", 8192, 97, 102, 103),
    place("kmem_cache", 4096, 1, 2, 3),
]


def test_a_change_is_none_where_the_seeds_overlap() -> None:
    [table] = tables([ENTRY], PLACES)
    [group] = table.groups
    [first], [second] = (row.cells for row in group.rows)
    assert first.measured_change == pytest.approx(10)
    assert not first.is_none
    assert first.spread_percent == pytest.approx(100 * (102 / 99 - 1))
    assert second.measured_change == pytest.approx(2)
    assert second.is_none
    assert second.spread_percent == pytest.approx(100 * (103 / 97 - 1))
    assert group.published_change == (5.0,)
    assert group.measured_change == pytest.approx((6.0,))
    assert table.seeds == 3
    assert len(table.measured_cells) == 2
    assert (table.changed_cells, table.near_cells) == (1, 1)
    assert table.largest_percent == pytest.approx(10)
    assert table.spread_percent > 6


@pytest.mark.parametrize(
    "places",
    [
        PLACES[1:],  # nothing to compare with
        [place("vmalloc", 4096, 1, 2, 3, exclusion_reason="changed by --set"), *PLACES[1:]],
        [*PLACES, place("kmalloc", 4096, 1, 2, 3)],  # not one case
    ],
)
def test_a_cell_without_its_two_cases_is_empty_and_has_no_mean(places: list[Place]) -> None:
    [table] = tables([ENTRY], places)
    cells = [row.cells[0].measured_change for row in table.groups[0].rows]
    assert cells[0] is None
    assert table.groups[0].measured_change == (None,)
    assert cells[1] == pytest.approx(2)
