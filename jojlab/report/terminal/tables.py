"""Prints the tables that others printed beside ours; computes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.study.tables import ComparedTable
from jojlab.report.terminal.console import new_table
from jojlab.report.words import tables as words


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
            measured = [row for row in group.rows if any(c.ours is not None for c in row.cells)]
            for place, row in enumerate(measured):
                cells = [(words.change(cell.theirs), words.cell(cell)) for cell in row.cells]
                table.add_row(
                    escape(f"{group.name}: {group.note}" if place == 0 else ""),
                    escape(row.name),
                    *(text for both in cells for text in both),
                )
            if len(measured) < len(group.rows):
                continue  # their mean is of all rows
            means = zip(group.theirs, group.ours, strict=True)
            table.add_row(
                "", "mean", *(words.change(value) for both in means for value in both),
                style="bold",
            )  # fmt: skip
        console.print(table)
        console.print(f"[dim]{escape(f'Theirs: {found.source}. {words.verdict(found)}')}[/dim]")


_BOTH = ("theirs", "ours")
