"""How does one figure depend on the fields of the cases? A table with one field across.

Reads the summary of a run; gives rows and columns. Every case has a place of its own: axes of the
experiment that are not asked for stand beside the rows, so that no cell holds several cases.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.errors import UseError, refuse_unknown
from jojlab.model.figures import FIGURES, Number

# Axes that are no field of a case: its variant, and its part of a run of several experiments.
VARIANT, EXPERIMENT = "variant", "experiment"


@dataclass(frozen=True)
class Pivot:
    """One figure: `down` are the axes of the rows, `across` that of the columns.

    `rows` are the values of `down`, then a cell for each of `columns`: the median over the seeds,
    and the case that it is of; None where there is no such case, or it lacks the figure.
    """

    figure: str
    down: tuple[str, ...]
    across: str
    columns: tuple[Any, ...]
    rows: tuple[tuple[tuple[Any, ...], tuple[tuple[Number, CaseSummary] | None, ...]], ...]


def pivot(summary: RunSummary, names: Sequence[str], figure: str) -> Pivot:
    """Arrange `figure` of the measured cases by fields, of which the last stands across.

    Raises UseError for a name that is no field of a case, or no figure.
    """
    refuse_unknown(figure, FIGURES, f"no figure {figure!r}", "see joj list figures")
    places = _places(summary)
    axes = _axes(summary, places)
    known = dict.fromkeys(name for place in places for name in place)
    remedy = f"the cases differ in: {', '.join(axes)}" if axes else "there is one case"
    for name in names:
        refuse_unknown(name, known, f"--by {name}: no field of a case", remedy)
    if len(set(names)) < len(names):
        raise UseError(f"--by {','.join(names)}: a field is named twice", "name each field once")
    *named, across = names
    down = (*named, *(axis for axis in axes if axis not in names))
    columns = tuple(dict.fromkeys(place.get(across) for place in places))
    rows: dict[tuple[Any, ...], dict[Any, tuple[Number, CaseSummary]]] = {}
    for place, case in zip(places, summary.measured_cases, strict=True):
        cells = rows.setdefault(tuple(place.get(name) for name in down), {})
        if figure in case.figures.median:
            cells[place.get(across)] = (case.figures.median[figure], case)
    return Pivot(
        figure,
        down,
        across,
        columns,
        tuple((key, tuple(cells.get(value) for value in columns)) for key, cells in rows.items()),
    )


def sorted_cases(summary: RunSummary, name: str) -> list[CaseSummary]:
    """Return the cases in the order of a figure or a field; "-name": from the largest down.

    Those without it come last. Raises UseError for a name that is neither.
    """
    key = name.removeprefix("-")
    fields = dict.fromkeys(field for case in summary.cases for field in case.case)
    remedy = "see joj list figures and joj list fields"
    known = (*FIGURES, *fields)
    refuse_unknown(key, known, f"--sort {name}: neither a figure nor a field", remedy)

    def value(case: CaseSummary) -> Any:
        return (case.figures.median if key in FIGURES else case.case).get(key)

    having = [case for case in summary.cases if value(case) is not None]
    mixed = len({isinstance(value(case), str) for case in having}) > 1
    having.sort(key=lambda c: str(value(c)) if mixed else value(c), reverse=name != key)
    return having + [case for case in summary.cases if value(case) is None]


def pivot_json(table: Pivot) -> list[dict[str, Any]]:
    """Return a pivot as rows: the values of its axes, and `cells` by the value across."""
    return [
        {
            **dict(zip(table.down, key, strict=True)),
            "figure": table.figure,
            "across": table.across,
            "cells": {
                _text(column): None if cell is None else cell[0]
                for column, cell in zip(table.columns, cells, strict=True)
            },
        }
        for key, cells in table.rows
    ]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _places(summary: RunSummary) -> list[dict[str, Any]]:
    """Return the fields of each measured case, with its part and variant where there are such."""
    found = []
    for case in summary.measured_cases:
        fields = dict(case.case)
        part = next((part for part in summary.parts if case.case_id in part.case_ids), None)
        if part and summary.is_composed:
            fields = {EXPERIMENT: part.name, **fields}
        if part and part.variants:
            fields = {VARIANT: part.variant_of.get(case.case_id, ""), **fields}
        found.append(fields)
    return found


def _axes(summary: RunSummary, places: Sequence[dict[str, Any]]) -> list[str]:
    """Return the fewest axes that tell the cases apart: the experiment's, else all that differ."""
    all_axes = [axis for part in summary.parts for axis in part.axes]
    for names in ([EXPERIMENT, VARIANT, *all_axes], [name for place in places for name in place]):
        axes = [
            name
            for name in dict.fromkeys(names)
            if len({json.dumps(place.get(name)) for place in places}) > 1
        ]
        keys = {json.dumps([place.get(name) for name in axes]) for place in places}
        if len(keys) == len(places):
            return axes
    return axes
