"""Prints whether a run keeps its budgets, and which lines of the bill grew."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from jojlab.gate.check import Held, LimitVerdict
from jojlab.report.terminal.console import new_table
from jojlab.report.words import gate

_STYLES = {Held.KEPT: "green", Held.BROKEN: "bold red", Held.NOT_MEASURED: "bold yellow"}


def print_gate(console: Console, verdicts: Sequence[LimitVerdict]) -> None:
    """Print a row for each limit, then what became of those that do not hold."""
    table = new_table(
        ("case", "left"), ("limit", "left"), ("", "left"), ("now", "right"), ("accepted", "right")
    )
    for each in verdicts:
        style = _STYLES[each.kept]
        table.add_row(
            escape(each.label),
            escape(each.limit.text),
            f"[{style}]{each.kept}[/{style}]",
            escape(gate.value(each)),
            escape(gate.before(each)),
        )
    console.print(table)
    for each in verdicts:
        if each.kept is Held.KEPT:
            continue
        style = _STYLES[each.kept]
        console.print(f"[{style}]{each.kept}[/{style}] {escape(gate.headline(each))}")
        for told in gate.details(each):
            console.print(f"    {escape(told)}")
    console.print(gate.summary(verdicts))
    console.print(f"[dim]{gate.NO_TOLERANCE}[/dim]")
