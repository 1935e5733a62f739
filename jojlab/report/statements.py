"""Published statements and tables beside our figures: their words and their print on a terminal.

Gets statements that are evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.study.parts import Part, statement_rows
from jojlab.analysis.study.published import Point, Statement
from jojlab.analysis.study.tables import ComparedTable, TableCell
from jojlab.model.figures import FIGURES
from jojlab.report.shared import text
from jojlab.report.shared.console import new_table

ABSENT = "–"


def published_value(result: Statement) -> str:
    """Return what was printed, as "39 inserts/s", "+17 %" or "above 3 times"."""
    if result.kind == "missing":
        return "not available"
    if result.value is None:
        return {"above": "more", "below": "less"}[result.holds]
    if result.unit == "%" and result.kind != "value":
        number = f"{result.value:+g} %"
    else:
        number = f"{text.digits(result.value)} {result.unit}".strip()
    return f"{result.holds} {number}".strip()


def measured_value(result: Statement, point: Point) -> str:
    """Return our value in the statement's unit; a dash where none was measured."""
    if point.measured is None:
        return ABSENT
    if point.other_change is not None:
        return f"{_change(result, point.measured)}, the other {_change(result, point.other_change)}"
    if result.kind in ("value", "missing") and not point.against:
        return text.figure(result.figure, point.measured)
    return _change(result, point.measured)


def error(point: Point) -> str:
    """Return our error, as "+12.0 %"."""
    return ABSENT if point.error is None else f"{point.error * 100:+.1f} %"


def case_words(point: Point) -> str:
    """Return which cases a point is about."""
    return f"{point.label} against {point.against}" if point.against else point.label


def statement_verdict(result: Statement) -> str:
    """Return the verdict, with the number of cases where they are several."""
    held, known = result.bound_counts
    words = result.verdict
    if result.kind == "bound" and known > 1:
        words += f", {held} of {known}"
    return words


def title(result: Statement) -> str:
    """Return what the statement says, or names."""
    figure = FIGURES.get(result.figure)
    return result.says or (figure.meaning if figure else result.figure)


def _change(result: Statement, value: float) -> str:
    return f"{text.digits(value)} times" if result.unit == "times" else f"{value:+.1f} %"


def percent_change(value: float | None) -> str:
    """Return a change in per cent, as the papers print it."""
    return "–" if value is None else f"{value:+.2f}"


def measured_cell(result: TableCell) -> str:
    """Return ours in per cent, and whether it is none; a dash where it was not measured."""
    if result.measured_change is None:
        return "–"
    return (
        f"none ({result.measured_change:+.3f})"
        if result.is_none
        else f"{result.measured_change:+.3f}"
    )


def table_verdict(table: ComparedTable) -> str:
    """Return how many changes there are, and how far the seeds of one case lie apart."""
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


def software_columns(part: Part) -> list[str]:
    """Return the titles of a part's software, where its statements are held against several."""
    names = list(dict.fromkeys(each.software for each in part.statements))
    return [f"software of {name}" for name in names] if len(names) > 1 else []


def result_words(result: Statement) -> str:
    """Return what became of a statement with one software: a verdict, or ours and its error."""
    if result.kind == "bound" or result.verdict == "not measured":
        return statement_verdict(result)
    told = [
        f"{measured_value(result, point)} ({error(point)})"
        if point.error is not None
        else measured_value(result, point)
        for point in result.points
    ]
    return "; ".join(dict.fromkeys(told))


def reasons(row: Iterable[Statement]) -> str:
    """Return why ours is another, with each software that it is another with."""
    told: dict[str, list[str]] = {}
    for each in row:
        if each.reason:
            told.setdefault(each.reason, []).append(each.software)
    return " ".join(f"{' and '.join(names)}: {reason}" for reason, names in told.items())


def print_statements(console: Console, part: Part) -> None:
    """Print values and changes line by line, then the bounds, and what explains a miss; with each
    software beside the other where the cases name it.
    """
    if columns := software_columns(part):
        _print_columns(console, part, columns)
        return
    values = [result for result in part.statements if result.kind != "bound"]
    bounds = [result for result in part.statements if result.kind == "bound"]
    if values:
        console.print(_values(values))
    if bounds:
        console.print(_bounds(bounds))
    for result in part.statements:
        if result.reason:
            console.print(f"[dim]{escape(title(result))}: {escape(result.reason)}[/dim]")


def _print_columns(console: Console, part: Part, columns: list[str]) -> None:
    table = new_table(
        ("published", "left"), ("theirs", "left"), *((name, "left") for name in columns)
    )
    for row in statement_rows(part):
        theirs = published_value(row[0]) + (" (anchor)" if row[0].anchor else "")
        table.add_row(
            escape(title(row[0])),
            escape(theirs),
            *(_style(result) for result in row),
        )
    console.print(table)
    for row in statement_rows(part):
        if told := reasons(row):
            console.print(f"[dim]{escape(title(row[0]))}: {escape(told)}[/dim]")


def _style(result: Statement) -> str:
    style = _STYLES.get(result.verdict)
    words = escape(result_words(result))
    return f"[{style}]{words}[/{style}]" if style else words


def _values(values: list[Statement]) -> Table:
    table = new_table(
        ("published", "left"),
        ("case", "left"),
        ("theirs", "right"),
        ("ours", "right"),
        ("error", "right"),
        ("", "left"),
    )
    for result in values:
        mark = "anchor" if result.anchor else "" if result.status == "stated" else result.status
        for point in result.points:
            table.add_row(
                escape(title(result)),
                escape(case_words(point)),
                escape(published_value(result)),
                escape(measured_value(result, point)),
                error(point),
                f"[dim]{mark}[/dim]" if mark else "",
            )
    return table


def _bounds(bounds: list[Statement]) -> Table:
    table = new_table(("published", "left"), ("verdict", "left"), ("where not", "left"))
    for result in bounds:
        style = _STYLES.get(result.verdict, "yellow")
        failed = [point for point in result.points if point.holds is False]
        table.add_row(
            escape(title(result)),
            f"[{style}]{escape(statement_verdict(result))}[/{style}]",
            escape("; ".join(f"{case_words(p)}: {measured_value(result, p)}" for p in failed)),
        )
    return table


def print_tables(console: Console, tables: Iterable[ComparedTable]) -> None:
    """Print the measured rows of each table, the means of its groups, and what they amount to."""
    for result in tables:
        if not result.measured:
            console.print(f"[dim]{escape(f'{result.title} ({result.source}): not measured')}[/dim]")
            continue
        table = new_table(
            (result.title, "left"),
            ("", "left"),
            *((f"{name}, {whose}", "right") for name in result.columns for whose in _BOTH),
        )
        for group in result.groups:
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
        console.print(f"[dim]{escape(f'Theirs: {result.source}. {table_verdict(result)}')}[/dim]")


_BOTH = ("theirs", "ours")
