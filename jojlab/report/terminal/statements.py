"""Prints the published statements of an experiment beside our figures; computes nothing."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.study.parts import Part
from jojlab.analysis.study.published import Statement
from jojlab.report.terminal.console import new_table
from jojlab.report.words import statements as words

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
            console.print(f"[dim]{escape(words.title(found))}: {escape(found.explanation)}[/dim]")


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
                escape(words.title(found)),
                escape(words.compared(point)),
                escape(words.theirs(found)),
                escape(words.ours(found, point)),
                words.error(point),
                f"[dim]{mark}[/dim]" if mark else "",
            )
    return table


def _bounds(bounds: list[Statement]) -> Table:
    table = new_table(("published", "left"), ("verdict", "left"), ("where not", "left"))
    for found in bounds:
        style = _STYLES.get(found.verdict, "yellow")
        failed = [point for point in found.points if point.holds is False]
        table.add_row(
            escape(words.title(found)),
            f"[{style}]{escape(words.verdict(found))}[/{style}]",
            escape("; ".join(f"{words.compared(p)}: {words.ours(found, p)}" for p in failed)),
        )
    return table
