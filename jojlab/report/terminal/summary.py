"""Prints a run: one line per case, what is missing, and every figure of one case."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.figures.figure import FIGURES
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.terminal.bill import print_bill
from jojlab.report.terminal.console import new_table, print_beside, print_some
from jojlab.report.terminal.memory_model import print_memory_models
from jojlab.report.terminal.statements import print_statements
from jojlab.report.terminal.tables import print_tables
from jojlab.report.words import cost, hazards, program, regimes, survival, text
from jojlab.report.words.overview import case_title, overview_columns, paying_note

_TITLE = 16  # letters of a column's title in one line
_SURVIVES = 30  # letters of what survives in one line
_NOTES = 100  # letters of a note in one line


def print_summary(console: Console, summary: RunSummary) -> None:
    """Print the question with the author's notes, one line per case, and what is missing."""
    if summary.question:
        console.print(f"[bold]{escape(summary.question)}[/bold]")
    _print_notes(console, summary.notes)
    for part in summary.parts:
        if summary.is_composed:
            console.print(f"\n[bold]{escape(part.name)}[/bold]: {escape(part.question)}")
            _print_notes(console, part.notes)
        _print_overview(console, summary.of_part(part))
        print_tables(console, part.tables)
        print_statements(console, part)
    seeds = len(summary.seeds)
    over = f"median [min–max] of {seeds} seeds" if seeds > 1 else "one seed"
    note = f"per commit; {over}; deferred, as a part of bytes: checkpoints and the sync at the end"
    console.print(f"[dim]{escape(note)}[/dim]")
    if found := sorted(filter(None, {regimes.meaning(case) for case in summary.measured})):
        console.print(f"[dim]regime {escape('; '.join(found))}[/dim]")
    if paying := paying_note(summary):
        console.print(f"[dim]{escape(paying)}[/dim]")
    print_memory_models(console, summary)
    print_warnings(console, summary)
    print_fingerprint(console, summary)


def _print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print what the experiment's author says of its results, in lines that can be read."""
    width = min(_NOTES, console.width)
    for note in notes:
        lines = textwrap.wrap(
            note,
            width,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        console.print(escape("\n".join(lines)), soft_wrap=True)


def _print_overview(console: Console, summary: RunSummary) -> None:
    columns = overview_columns(summary)
    risky = any(case.hazards or case.unknowns for case in summary.measured)
    # A long title is wrapped, so that the table is no wider than its numbers need.
    titles = [
        *((textwrap.fill(title, _TITLE), "right") for title, _ in columns),
        *([("at risk", "left")] * risky),
        ("survives", "left"),
    ]
    rows = []
    for case in summary.cases:
        if case.status == "pending" and not case.figures.seeds:
            continue  # print_warnings() counts them
        if not case.figures.seeds:
            rows.append([escape(case.label), f"[dim]{case.status}[/dim]"])
            continue
        label = escape(case.label)
        if partial := summary.partial(case):
            label += f"\n[yellow]{partial}[/yellow]"
        cells = [_with_spread(case, figure) for _, figure in columns]
        at_risk = hazards.manuals(case) if case.hazards or case.unknowns else ""
        marks = [f"[yellow]{at_risk}[/yellow]"] * risky
        rows.append([label, *cells, *marks, _survives(case)])
    print_beside(console, [(case_title(summary), "left"), *titles], rows)
    for sentence, labels in hazards.by_sentence(summary.measured).items():
        where = hazards.named(labels, len(summary.measured))
        console.print(f"[yellow]at risk[/yellow] {escape(f'{sentence} ({where})')}")
    for case in summary.measured:
        if words := survival.contradiction(case):
            told = f"{case.label}: {words}; {survival.sentence(case)}"
            console.print(f"[bold yellow]power cuts[/bold yellow] {escape(told)}")


def _survives(case: CaseSummary) -> str:
    """Return what power cuts left of a case, as its row shows it."""
    words = escape(textwrap.fill(survival.short(case), _SURVIVES))
    if case.survival is None:
        return f"[dim]{words}[/dim]"
    return f"[yellow]{words}[/yellow]" if case.survival.is_unsafe else words


def print_fingerprint(console: Console, summary: RunSummary) -> None:
    """Print what the results depend on, in one line; `joj show --json` has it in full."""
    parts = summary.fingerprint
    words = [
        f"image {str(parts['image'])[:16]}" if "image" in parts else "",
        f"kernel {parts['kernel_release']}" if "kernel_release" in parts else "",
        str(parts.get("qemu_version", "")).split(" (")[0],
    ]
    if summary.clocks and summary.clocks != ("virtual",):
        words.append(text.clocks(summary.clocks))
    if line := ", ".join(filter(None, words)):
        console.print(f"[dim]{escape(line)}[/dim]")


def print_warnings(console: Console, summary: RunSummary) -> None:
    """Print what is missing in the captures, and the cases without a result."""
    for case in summary.cases:
        missing = case.missing
        if missing.incomplete:
            told = "; ".join(missing.in_words)
            console.print(f"[bold red]incomplete[/bold red] {escape(f'{case.label}: {told}')}")
        for note in missing.notes:
            console.print(f"[yellow]note[/yellow] {escape(case.label)}: {escape(note)}")
    for status, cases in _without_result(summary).items():
        named = [f"{escape(case.label)}: {escape(case.reason)}" for case in cases]
        print_some(console, f"[yellow]{status}[/yellow]", named, "joj show --json")


def _without_result(summary: RunSummary) -> dict[str, list[CaseSummary]]:
    found: dict[str, list[CaseSummary]] = {"failed": [], "skipped": [], "pending": []}
    for case in summary.cases:
        if case.status != "ok":
            found[case.status].append(case)
    return found


def print_case(console: Console, case: CaseSummary) -> None:
    """Print every figure of one case, what it puts at risk, and its bill."""
    table = new_table(("figure", "left"), ("median", "right"), ("[min–max]", "left"), ("", "left"))
    for name, each in FIGURES.items():
        if name in case.figures.median:
            table.add_row(
                name,
                text.figure(name, case.figures.median[name]),
                escape(text.spread(name, case.figures.spread[name])),
                f"[dim]{each.meaning}[/dim]",
            )
    console.print(table)
    for sentence in hazards.sentences(case.hazards):
        console.print(f"[bold yellow]at risk[/bold yellow] {escape(sentence)}")
    for sentence in hazards.not_known(case.unknowns):
        console.print(f"[bold yellow]safety not known[/bold yellow] {escape(sentence)}")
    _print_survival(console, case)
    for seed, hashed in case.operation_hashes.items():
        console.print(f"[dim]operations of seed {seed}: {hashed}[/dim]")
    for seed, load in case.backgrounds.items():
        did = ", ".join(f"{name} {value}" for name, value in load.get("did", {}).items())
        console.print(escape(f"background of seed {seed}: {load.get('kind')}: {did}"))
    if not case.bill and (told := cost.beside(case.apart)):
        console.print(escape(told))
    for seed, ended in case.programs.items():
        console.print(escape(f"seed {seed}: {program.sentence(ended)}"))
        console.print(escape(program.output(ended)))
    if case.bill:
        is_of_files = str(case.case.get("workload")).startswith("file-")
        print_bill(console, case.bill, "operation" if is_of_files else "commit")


def _print_survival(console: Console, case: CaseSummary) -> None:
    """Print what power cuts left of one case, and where that contradicts the manuals."""
    console.print(f"[bold]power cuts[/bold] {escape(survival.sentence(case))}")
    if words := survival.contradiction(case):
        console.print(f"[bold yellow]{words}[/bold yellow]")
    if case.survival:
        told = (survival.moments(case), survival.worst(case), survival.torn_alone(case))
        for line in filter(None, told):
            console.print(f"[dim]{escape(line)}[/dim]")


def _with_spread(case: CaseSummary, figure: str) -> str:
    if figure not in case.figures.median:
        return "–"
    value = text.figure(figure, case.figures.median[figure])
    ends = text.spread(figure, case.figures.spread[figure])
    return f"{value}\n[dim]{escape(ends)}[/dim]" if ends else value
