"""Tables of changes that others printed, and ours in the same cells.

A cell is about one case: that of its column, its group and its row. Its change is by how much a
figure is above that of the case that `against` names and that differs in nothing else. Each is the
median over the seeds. Where the seeds of the two cases overlap, the change is none: other seeds may
give another sign.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.study.published import Place
from jojlab.foundation.printable import public_fields
from jojlab.trace.shapes import selects


@dataclass(frozen=True)
class TableCell:
    """Both changes in per cent; `measured_change` is None where it was not measured.

    `spread_percent` is how far the seeds of one of the two cases lie apart, the larger of both.
    """

    published_change: float
    measured_change: float | None = None
    spread_percent: float | None = None
    is_none: bool = False


@dataclass(frozen=True)
class ComparedRow:
    """A row of a table: its name, and a cell for each column."""

    name: str
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class ComparedGroup:
    """Rows, and the means of their columns; one of ours is None where a cell was not measured."""

    name: str
    note: str
    rows: tuple[ComparedRow, ...]
    published_change: tuple[float, ...]
    measured_change: tuple[float | None, ...]


@dataclass(frozen=True)
class ComparedTable:
    """A printed table beside ours."""

    title: str
    source: str
    figure: str
    columns: tuple[str, ...]
    groups: tuple[ComparedGroup, ...]
    seeds: int

    @property
    def measured_cells(self) -> tuple[TableCell, ...]:
        """The cells that have a change of ours."""
        cells = (cell for group in self.groups for row in group.rows for cell in row.cells)
        return tuple(cell for cell in cells if cell.measured_change is not None)

    @property
    def changed_cells(self) -> int:
        """Return how many of them are changes beyond the seeds."""
        return sum(not cell.is_none for cell in self.measured_cells)

    @property
    def near_cells(self) -> int:
        """Return how many of them lie within one point of what was printed."""
        return sum(
            abs((cell.measured_change or 0.0) - cell.published_change) <= 1
            for cell in self.measured_cells
        )

    @property
    def largest_percent(self) -> float:
        """The largest change, up or down; 0 without any."""
        return max((abs(cell.measured_change or 0.0) for cell in self.measured_cells), default=0.0)

    @property
    def spread_percent(self) -> float:
        """Return how far the seeds of one case lie apart at most; 0 without any."""
        return max((cell.spread_percent or 0.0 for cell in self.measured_cells), default=0.0)


def tables(
    entries: Iterable[Mapping[str, Any]], places: Sequence[Place]
) -> tuple[ComparedTable, ...]:
    """Fill every table of the experiment with the changes of its cases."""
    fit = [place for place in places if not place.exclusion_reason]
    return tuple(_table(entry, fit) for entry in entries)


def _table(entry: Mapping[str, Any], places: Sequence[Place]) -> ComparedTable:
    groups = []
    for group in entry["group"]:
        rows = []
        for row in group["rows"]:
            cells = []
            for column, printed in zip(entry["columns"], row["values"], strict=True):
                wanted = {**column.get("case", {}), **group.get("case", {}), **row.get("case", {})}
                figure = column.get("figure") or entry["figure"]
                cells.append(_cell(figure, entry["against"], wanted, float(printed), places))
            rows.append(ComparedRow(str(row["name"]), tuple(cells)))
        columns = list(zip(*(row.cells for row in rows), strict=True))
        groups.append(
            ComparedGroup(
                str(group["name"]),
                str(group.get("note", "")),
                tuple(rows),
                tuple(
                    statistics.mean(cell.published_change for cell in cells) for cells in columns
                ),
                tuple(_mean([each.measured_change for each in cells]) for cells in columns),
            )
        )
    return ComparedTable(
        str(entry["title"]),
        f"{entry['source']}, {entry['place']}",
        str(entry["figure"]),
        tuple(str(column["name"]) for column in entry["columns"]),
        tuple(groups),
        max((len(place.figures.seeds) for place in places), default=0),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known and len(known) == len(values) else None


def _cell(
    figure: str,
    against: Mapping[str, Any],
    wanted: Mapping[str, Any],
    printed: float,
    places: Sequence[Place],
) -> TableCell:
    here = _figure(figure, wanted, places)
    base = _figure(figure, {**wanted, **against}, places)
    if here is None or base is None:
        return TableCell(printed)
    (median, low, high), (beside, lowest, highest) = here, base
    return TableCell(
        printed,
        (median / beside - 1) * 100,
        (max(high / low, highest / lowest) - 1) * 100,
        is_none=low <= highest and lowest <= high,
    )


def _figure(
    name: str, wanted: Mapping[str, Any], places: Sequence[Place]
) -> tuple[float, float, float] | None:
    """Return median, smallest and largest of the one case that is meant; None without it."""
    found = [place for place in places if selects(wanted, place.fields)]
    if len(found) != 1:
        return None
    figures = found[0].figures
    low, high = figures.spread.get(name, (0, 0))
    return (float(figures.median[name]), float(low), float(high)) if low else None


def tables_json(tables: Iterable[ComparedTable]) -> list[dict[str, Any]]:
    """Return what `joj show --json` prints of tables; changes are in per cent."""
    return [
        {
            **{key: value for key, value in vars(table).items() if key != "groups"},
            "groups": [
                {
                    **_changes_json(group),
                    "rows": [
                        {"name": row.name, "cells": [_changes_json(cell) for cell in row.cells]}
                        for row in group.rows
                    ],
                }
                for group in table.groups
            ],
        }
        for table in tables
    ]


def _changes_json(record: TableCell | ComparedGroup) -> dict[str, Any]:
    return public_fields(record, published_change="theirs", measured_change="ours")
