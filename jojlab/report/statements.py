"""Published statements and tables beside our figures: their words and their print on a terminal.

Gets statements that are evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.study.parts import Part
from jojlab.analysis.study.published import Point, Statement
from jojlab.analysis.study.tables import ComparedTable, TableCell
from jojlab.model.figures import FIGURES
from jojlab.report.shared import text
from jojlab.report.shared.console import new_table

ABSENT = "–"


def published_value(found: Statement) -> str:
    """Return what was printed, as "39 inserts/s", "+17 %" or "above 3 times"."""
    if found.kind == "missing":
        return "not available"
    if found.value is None:
        return {"above": "more", "below": "less"}[found.holds]
    if found.unit == "%" and found.kind != "value":
        number = f"{found.value:+g} %"
    else:
        number = f"{text.digits(found.value)} {found.unit}".strip()
    return f"{found.holds} {number}".strip()


def measured_value(found: Statement, point: Point) -> str:
    """Return our value in the statement's unit; a dash where none was measured."""
    if point.measured is None:
        return ABSENT
    if point.other_change is not None:
        return f"{_change(found, point.measured)}, the other {_change(found, point.other_change)}"
    if found.kind in ("value", "missing") and not point.against:
        return text.figure(found.figure, point.measured)
    return _change(found, point.measured)


def error(point: Point) -> str:
    """Return our error, as "+12.0 %"."""
    return ABSENT if point.error is None else f"{point.error * 100:+.1f} %"


def compared(point: Point) -> str:
    """Return which cases a point is about."""
    return f"{point.label} against {point.against}" if point.against else point.label


def statement_verdict(found: Statement) -> str:
    """Return the verdict, with the number of cases where they are several."""
    held, known = found.bound_counts
    words = found.verdict
    if found.kind == "bound" and known > 1:
        words += f", {held} of {known}"
    return words


def title(found: Statement) -> str:
    """Return what the statement says, or names."""
    figure = FIGURES.get(found.figure)
    return found.says or (figure.meaning if figure else found.figure)


def _change(found: Statement, value: float) -> str:
    return f"{text.digits(value)} times" if found.unit == "times" else f"{value:+.1f} %"


def percent_change(value: float | None) -> str:
    """A change in per cent, as the papers print it."""
    return "–" if value is None else f"{value:+.2f}"


def measured_cell(found: TableCell) -> str:
    """Ours in per cent, and whether it is none; a dash where it was not measured."""
    if found.measured_change is None:
        return "–"
    return (
        f"none ({found.measured_change:+.3f})" if found.is_none else f"{found.measured_change:+.3f}"
    )


def table_verdict(table: ComparedTable) -> str:
    """How many changes there are, and how far the seeds of one case lie apart."""
    if not table.measured:
        return "Not measured."
    if table.seeds == 1:
        return (
            f"Ours has one seed, so that nothing tells a change from noise: take more. The largest "
            f"change of {len(table.measured)} cells is {table.largest_percent:.3f} %; {table.near} "
            "are within one point of what was printed."
        )
    seeds = f"the {table.seeds} seeds"
    return (
        f"Ours differs from the case that it is compared with beyond {seeds} in {table.changed} of "
        f"{len(table.measured)} cells; the largest change is {table.largest_percent:.3f} %, and "
        f"the seeds of one case lie up to {table.spread_percent:.3f} % apart. {table.near} cells "
        "are within one point of what was printed. "
        "none: the seeds of both cases overlap, so that other seeds may give another sign."
    )


_STYLES = {"reproduced": "green", "not reproduced": "red"}


def print_statements(console: Console, part: Part) -> None:
    """Print values and changes line by line, then the bounds, and what explains a miss."""
    values = [found for found in part.statements if found.kind != "bound"]
    bounds = [found for found in part.statements if found.kind == "bound"]
    if values:
        console.print(_values(values))
    if bounds:
        console.print(_bounds(bounds))
    for found in part.statements:
        if found.missed and found.explanation:
            console.print(f"[dim]{escape(title(found))}: {escape(found.explanation)}[/dim]")


def _values(values: list[Statement]) -> Table:
    table = new_table(
        ("published", "left"),
        ("case", "left"),
        ("theirs", "right"),
        ("ours", "right"),
        ("error", "right"),
        ("", "left"),
    )
    for found in values:
        mark = "anchor" if found.anchor else "" if found.status == "stated" else found.status
        for point in found.points:
            table.add_row(
                escape(title(found)),
                escape(compared(point)),
                escape(published_value(found)),
                escape(measured_value(found, point)),
                error(point),
                f"[dim]{mark}[/dim]" if mark else "",
            )
    return table


def _bounds(bounds: list[Statement]) -> Table:
    table = new_table(("published", "left"), ("verdict", "left"), ("where not", "left"))
    for found in bounds:
        style = _STYLES.get(found.verdict, "yellow")
        failed = [point for point in found.points if point.holds is False]
        table.add_row(
            escape(title(found)),
            f"[{style}]{escape(statement_verdict(found))}[/{style}]",
            escape("; ".join(f"{compared(p)}: {measured_value(found, p)}" for p in failed)),
        )
    return table


def print_tables(console: Console, tables: Iterable[ComparedTable]) -> None:
    """Print the measured rows of each table, the means of its groups, and what they amount to."""
    for found in tables:
        if not found.measured:
            console.print(f"[dim]{escape(f'{found.title} ({found.source}): not measured')}[/dim]")
            continue
        table = new_table(
            (found.title, "left"),
            ("", "left"),
            *((f"{name}, {whose}", "right") for name in found.columns for whose in _BOTH),
        )
        for group in found.groups:
            measured = [
                row for row in group.rows if any(c.measured_change is not None for c in row.cells)
            ]
            for place, row in enumerate(measured):
                cells = [
                    (percent_change(cell.published_change), measured_cell(cell))
                    for cell in row.cells
                ]
                table.add_row(
                    escape(f"{group.name}: {group.note}" if place == 0 else ""),
                    escape(row.name),
                    *(text for both in cells for text in both),
                )
            if len(measured) < len(group.rows):
                continue  # their mean is of all rows
            means = zip(group.published_change, group.measured_change, strict=True)
            table.add_row(
                "", "mean", *(percent_change(value) for both in means for value in both),
                style="bold",
            )  # fmt: skip
        console.print(table)
        console.print(f"[dim]{escape(f'Theirs: {found.source}. {table_verdict(found)}')}[/dim]")


_BOTH = ("theirs", "ours")
