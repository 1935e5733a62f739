"""Prints what kind of I/O a case made, and what its devices did."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.traffic.characterisation import Characterisation
from jojlab.report.terminal.console import new_table
from jojlab.report.words import kind_rows


def print_kinds(console: Console, label: str, kinds: Characterisation) -> None:
    """Print what kind of I/O one case made, and what its devices did."""
    console.print(f"[bold]{escape(label)}[/bold]: {kind_rows.totals_text(kinds)}")
    sides = ("left", "left", *("right",) * (len(kind_rows.COLUMNS) - 2))
    reads = "read" in kinds.operations
    shown = len(kind_rows.COLUMNS) if reads else len(kind_rows.COLUMNS) - 4
    table = new_table(*list(zip(kind_rows.COLUMNS, sides, strict=True))[:shown])
    for row in kind_rows.characterisation_cells(kinds):
        table.add_row(*map(escape, row[:shown]))
    console.print(table)
    devices = new_table(
        *zip(kind_rows.DEVICE_COLUMNS, ("left", "right", "right", "right"), strict=True)
    )
    for row in kind_rows.device_cells(kinds):
        devices.add_row(*map(escape, row))
    console.print(devices)
