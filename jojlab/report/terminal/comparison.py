"""Prints what differs between two runs."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.compare import Comparison, OneSided
from jojlab.report.terminal.console import new_table, print_some
from jojlab.report.words import survival, text

_ALL = "joj diff --json"


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the figures that changed, and the differences in how the runs were made.

    Runs with different clocks differ in nearly everything: only --json has their fingerprints.
    """
    if comparison.clocks:
        words = " and ".join(text.clocks(clocks) for clocks in comparison.clocks)
        console.print(f"[bold yellow]not comparable[/bold yellow]: {escape(words)}")
    for name, (old, new) in comparison.fingerprint.items() if not comparison.clocks else ():
        console.print(f"[cyan]{escape(name)}[/cyan]: {escape(_change_words(old, new))}")
    settings = [
        f"{escape(case_id)}: {name}: {escape(_change_words(old, new))}"
        for case_id, fields in comparison.settings.items()
        for name, (old, new) in fields.items()
    ]
    print_some(console, "[cyan]setting[/cyan]", settings, _ALL)
    for which, side in (("first", comparison.old), ("second", comparison.new)):
        only = f"[yellow]only in the {which} run[/yellow]:"
        print_some(console, only, [escape(case_id) for case_id in side.cases], _ALL)
        for names, cases in _by_figures(side).items():
            console.print(
                f"[yellow]figures only in the {which} run[/yellow]: {', '.join(names)} "
                f"[dim]({escape(', '.join(cases))})[/dim]"
            )
        lacking = [f"{escape(case_id)}: {escape(why)}" for case_id, why in side.lacking.items()]
        print_some(console, f"[bold red]incomplete in the {which} run[/bold red]", lacking, _ALL)
    seeds = [
        f"{escape(case_id)}: {' → '.join(', '.join(map(str, own)) for own in both)}"
        for case_id, both in comparison.seeds.items()
    ]
    print_some(console, "[cyan]seeds[/cyan]", seeds, _ALL)
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
    for found in comparison.survivals:
        style = "bold yellow" if found.differs else "dim"
        words = " → ".join(survival.seen(each) for each in (found.old, found.new))
        console.print(f"[{style}]power cuts[/{style}] {escape(f'{found.label}: {words}')}")
    if comparison.nothing:
        console.print(
            "[bold red]nothing to compare[/bold red]: no case of either run has figures; for "
            "imported traces, use joj show RUN --characterise"
        )
        return
    console.print(f"{len(comparison.changes)} figures changed, {comparison.equal_figures} equal")


def _by_figures(side: OneSided) -> dict[tuple[str, ...], list[str]]:
    """Group the cases by the figures that only they have: mostly all have the same."""
    found: dict[tuple[str, ...], list[str]] = {}
    for case_id, names in side.figures.items():
        found.setdefault(names, []).append(case_id)
    return found


def _change_words(old: object, new: object) -> str:
    return " → ".join("absent" if value is None else str(value) for value in (old, new))
