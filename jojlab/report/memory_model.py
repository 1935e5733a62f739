"""The counts of a memory model by case, and the time that it would add."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.experiment import table_rows
from jojlab.report.shared.console import left, print_table, print_wide_table, right
from jojlab.report.shared.template import Section
from jojlab.report.statements import print_tables
from jojlab.trace.memory_counts import MemoryModel

COLUMNS = ("case", "loads", "stores", "micro TLB misses", "levels walked", "L1 misses",
           "L2 misses", "added", "of its time")  # fmt: skip
_TITLE = 10  # letters of a column's title in one line
_COUNTS = ("loads", "stores", "micro_tlb_misses", "walk_levels", "l1_misses", "l2_misses")
TOUCHES = (
    "Loads and stores in each buffer, in each part of the runs; the fewest and the most of any "
    "case and seed."
)
LIMITS = (
    "A model: loads and stores of x86-64 code in the tables of another core, which drop what was "
    "used longest ago and keep stores. Without prefetching, store buffers and misses that overlap "
    "it adds time that a core may hide; without instruction fetches and address spaces in the TLB "
    "it leaves some out. No other figure includes this time (docs/memory-model.md)."
)


def model_title(model: MemoryModel) -> str:
    """Return the title of the table of cases."""
    seeds = max((len(case.seeds) for case in model.cases), default=0)
    over = f"median of {seeds} seeds" if seeds > 1 else "one seed"
    return f"{model.title}; while transactions ran, {over}"


def case_rows(summary: RunSummary, model: MemoryModel) -> Iterator[list[str]]:
    """Yield a row for each case: its label, counts, the time added, and its share of the measured
    time.

    The share is of the time without it; a dash where no throughput is known.
    """
    by_id = {case.case_id: case for case in summary.cases}
    for found in model.cases:
        case = by_id.get(found.case_id)
        if case is None:
            continue
        added_ns = found.median("added_ns")
        figures, share = case.figures.median, "–"
        if throughput := figures.get("throughput_tps"):
            share = f"{added_ns / 1e9 * throughput / figures['transactions']:+.1%}"
        counts = [f"{found.median(name):,.0f}" for name in _COUNTS]
        yield [case.label, *counts, f"{added_ns / 1e6:,.3f} ms", share]


def touch_rows(model: MemoryModel) -> Iterator[list[str]]:
    """Yield a row for each buffer, with a cell for each part of the runs."""
    for found in model.touches():
        yield [
            found.buffer,
            *(_touches(found.counts_by_part.get(part)) for part in model.parts),
        ]


def _touches(counts: tuple[int, int] | None) -> str:
    if counts is None:
        return "–"
    low, high = counts
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def print_memory_models(console: Console, summary: RunSummary) -> None:
    """Print of each model a line a case, the touches of each buffer, and the printed tables with
    its time in every case.
    """
    for model in summary.memory_models:
        console.print(f"\n[bold]Memory model: {escape(model_title(model))}[/bold]")
        for source in model.sources:
            console.print(f"[dim]{escape(source)}[/dim]")
        titles = (fill(title, _TITLE, break_long_words=False) for title in COLUMNS[1:])
        rows = ([*map(escape, row)] for row in case_rows(summary, model))
        print_wide_table(console, [*left(COLUMNS[0]), *right(*titles)], rows)
        if touches := list(touch_rows(model)):
            console.print(TOUCHES)
            print_table(console, (*left("buffer"), *right(*model.parts)), touches)
        for part in summary.parts:
            if found := part.modelled_tables.get(model.core, ()):
                console.print(f"[bold]With the time of {escape(model.core)} in every case:[/bold]")
                print_tables(console, found)
        console.print(f"[dim]{escape(LIMITS)}[/dim]")


def memory_section(summary: RunSummary) -> Section | None:
    """Return each model: its cases, touches of buffers, and printed tables with its time."""
    if not summary.memory_models:
        return None
    models = [
        {
            "core": model.core,
            "title": model_title(model),
            "sources": model.sources,
            "columns": list(COLUMNS),
            "rows": list(case_rows(summary, model)),
            "touch_columns": ["buffer", *model.parts],
            "touches": list(touch_rows(model)),
            "tables": [
                row
                for part in summary.parts
                for row in table_rows(part.modelled_tables.get(model.core, ()))
            ],
        }
        for model in summary.memory_models
    ]
    return Section.render("memory", "memory_model", models=models, about=TOUCHES, limits=LIMITS)
