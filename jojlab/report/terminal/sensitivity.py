"""Prints how much the numbers of a device move the figures, the one that moves most first."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from jojlab.campaign.sensitivity import Sensitivity
from jojlab.report.terminal.console import terminal


def print_sensitivity(found: Sensitivity) -> None:
    """Print a line for each value that was tried, a column for each case."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    for title in ("number", "is", "tried", *found.base):
        table.add_column(escape(title), justify="left" if title == "number" else "right")
    table.add_row(found.figure, "", "", *(f"{value:,.2f}" for value in found.base.values()))
    changes = {(row.key, row.value, row.case_id): row for row in found.effects}
    for number in found.by_effect():
        for value in number.values:
            cells = []
            for case in found.base:
                change = changes[number.key, value, case].change
                cells.append("cannot run" if change is None else f"{change:+.1%}")
            table.add_row(number.key, f"{number.value:,}", f"{value:,}", *cells)
    terminal().print(table)
