"""Prints what differs between two runs."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.compare import Comparison
from jojlab.report.terminal.console import new_table
from jojlab.report.words import text


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the figures that changed, and what differs in how the runs were made."""
    if comparison.clocks:
        words = " and ".join(text.clocks(clocks) for clocks in comparison.clocks)
        console.print(f"[bold yellow]not to be compared[/bold yellow]: {escape(words)}")
    for name, (old, new) in comparison.fingerprint.items():
        console.print(f"[cyan]{escape(name)}[/cyan]: {escape(_change_words(old, new))}")
    for case_id, fields in comparison.settings.items():
        for name, (old, new) in fields.items():
            console.print(
                f"[cyan]{escape(case_id)}: {name}[/cyan]: {escape(_change_words(old, new))}"
            )
    for which, cases in (("first", comparison.only_old), ("second", comparison.only_new)):
        for case_id in cases:
            console.print(f"[yellow]only in the {which} run[/yellow]: {escape(case_id)}")
    if comparison.changes:
        table = new_table(
            ("case", "left"),
            ("figure", "left"),
            ("old", "right"),
            ("new", "right"),
            ("change", "right"),
            ("", "left"),
        )
        for change in comparison.changes:
            table.add_row(
                escape(change.label),
                change.figure,
                text.figure(change.figure, change.old),
                text.figure(change.figure, change.new),
                text.change(change.change),
                "[dim]within the seeds' spread[/dim]" if change.within_spread else "",
            )
        console.print(table)
    console.print(f"{len(comparison.changes)} figures changed, {comparison.equal_figures} equal")


def _change_words(old: object, new: object) -> str:
    return " → ".join("absent" if value is None else str(value) for value in (old, new))
