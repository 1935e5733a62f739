"""Prints what a memory model counted of each case; computes nothing."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.terminal.console import new_table
from jojlab.report.terminal.tables import print_tables
from jojlab.report.words import memory_model as words


def print_memory_models(console: Console, summary: RunSummary) -> None:
    """Print of each model a line a case, the touches of each buffer, and the printed tables with
    its time in every case.
    """
    for model in summary.memory_models:
        console.print(f"\n[bold]Memory model: {escape(words.title(model))}[/bold]")
        for source in model.sources:
            console.print(f"[dim]{escape(source)}[/dim]")
        table = new_table(
            *((name, "right" if at else "left") for at, name in enumerate(words.COLUMNS))
        )
        for row in words.rows(summary, model):
            table.add_row(*map(escape, row))
        console.print(table)
        touches = list(words.touch_rows(model))
        if touches:
            console.print(words.TOUCHES)
            table = new_table(("buffer", "left"), *((part, "right") for part in model.parts))
            for row in touches:
                table.add_row(*row)
            console.print(table)
        for part in summary.parts:
            if found := part.modelled_tables.get(model.core, ()):
                console.print(f"[bold]With the time of {escape(model.core)} in every case:[/bold]")
                print_tables(console, found)
        console.print(f"[dim]{escape(words.LIMITS)}[/dim]")
