"""Prints cases as a list for programs, and a figure by the fields of the cases."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.figures.figure import FIGURES
from jojlab.analysis.run.pivot import Pivot
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.printable import CsvStream
from jojlab.report.terminal.console import print_beside
from jojlab.report.words import hazards, survival, text


def print_pivot(console: Console, found: Pivot, summary: RunSummary) -> None:
    """Print one figure in its own unit; a case that lacks a seed, or is at risk, is marked."""
    console.print(f"[bold]{found.figure}[/bold]: {escape(FIGURES[found.figure].meaning)}")
    # The name of the field across comes before its values.
    heads = [(f"{found.across}:", "left"), *((str(value), "right") for value in found.columns)]
    columns = [*((name, "left") for name in found.down), *heads]
    rows = []
    for key, cells in found.rows:
        shown = [
            "–"
            if cell is None
            else text.figure(found.figure, cell[0])
            + (" *" if summary.partial(cell[1]) else "")
            + (" !" if survival.risk(cell[1]) else "")
            for cell in cells
        ]
        rows.append([*(escape("–" if v is None else str(v)) for v in key), "", *shown])
    print_beside(console, columns, rows, naming=len(found.down) + 1)
    if any(summary.partial(cell[1]) for _, cells in found.rows for cell in cells if cell):
        console.print("[yellow]*[/yellow] not every seed was measured")
    shown_cases = [cell[1] for _, cells in found.rows for cell in cells if cell]
    for sentence, labels in hazards.by_sentence(shown_cases).items():
        where = hazards.named(labels, len(shown_cases))
        mark = "safety" if sentence.startswith(hazards.NOT_KNOWN) else "at risk"
        console.print(f"[yellow]! {mark}[/yellow] {escape(f'{sentence} ({where})')}")
    for case in shown_cases:
        if case.survival and case.survival.is_unsafe:
            told = escape(f"{case.label}: {survival.short(case)}")
            console.print(f"[yellow]! power cuts[/yellow] {told}")
    console.print(f"[dim]power cuts: {survival.several(shown_cases)}[/dim]")


def write_pivot(stream: TextIO, found: Pivot) -> None:
    """Write a pivot as CSV: the figure's name, the axes, and a column for each value across."""
    writer = csv.writer(CsvStream(stream), lineterminator="\n")
    writer.writerow(["figure", *found.down, *(f"{found.across}={v}" for v in found.columns)])
    for key, cells in found.rows:
        writer.writerow([found.figure, *key, *("" if cell is None else cell[0] for cell in cells)])


def write_cases(stream: TextIO, cases: Sequence[CaseSummary]) -> None:
    """Write a line a case as CSV: seeds, risk, survival, fields, and the medians of figures."""
    fields = list(dict.fromkeys(name for case in cases for name in case.case))
    figures = [name for name in FIGURES if any(name in case.figures.median for case in cases)]
    # A few figures have the name of a field, such as transactions.
    heads = [f"case_{name}" if name in figures else name for name in fields]
    writer = csv.writer(CsvStream(stream), lineterminator="\n")
    said = ["case_id", "status", "seeds", "at_risk", "survives"]
    writer.writerow([*said, *heads, *figures])
    for case in cases:
        writer.writerow(
            [case.case_id, case.status, len(case.figures.seeds)]
            + [hazards.manuals(case), survival.short(case)]
            + [case.case.get(name, "") for name in fields]
            + [case.figures.median.get(name, "") for name in figures]
        )
