"""Prints a run: one line per case, what is missing, every figure of one case, a figure by fields, a
live run.
"""

from __future__ import annotations

import csv
import json
import textwrap
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from jojlab.analysis.run.compare import flatten
from jojlab.analysis.run.pivot import Pivot
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.printable import CsvStream
from jojlab.model.figures import FIGURES
from jojlab.report import durability, hazards
from jojlab.report.answer import answer_lines
from jojlab.report.bill import apart_words, print_bill, program_lines
from jojlab.report.live_trace import print_live_trace
from jojlab.report.memory_model import print_memory_models
from jojlab.report.overview import CaseTable, case_table, case_title, overview_columns, paying_note
from jojlab.report.shared import text
from jojlab.report.shared.console import left, new_table, print_some, print_wide_table, right
from jojlab.report.shared.short_answer import print_answer
from jojlab.report.shared.template import NotedCell
from jojlab.report.statements import print_statements, print_tables

_TITLE = 16  # letters of a column's title in one line
_HEAD = 8  # of a column of few digits
_DURABILITY_WIDTH = 30  # letters in a line of the column
_UNLIMITED = 10_000  # columns: more than any table has
_NOTES = 100  # letters of a note in one line


def print_summary(console: Console, summary: RunSummary, *, figures: bool = False) -> None:
    """Print the short answer, one line per case, what was asked and noted, and what is missing.

    With `figures` the lines have all figures of the overview, not the few that answer most.
    """
    print_answer(console, answer_lines(summary))
    for part in summary.parts:
        if summary.is_composed:
            console.print(f"\n[bold]{escape(part.name)}[/bold]: {escape(part.question)}")
            _print_notes(console, part.notes)
        own = summary.part_summary(part)
        if figures:
            _print_figures(console, own)
        else:
            _print_cases(console, own)
        _print_risks(console, own)
        print_tables(console, part.tables)
        print_statements(console, part)
    if summary.question:
        console.print(f"\n[bold]{escape(summary.question)}[/bold]")
    _print_notes(console, summary.notes)
    seeds = len(summary.seeds)
    over = f"median{' [min–max]' * figures} of {seeds} seeds" if seeds > 1 else "one seed"
    note = f"per commit; {over}"
    if figures:
        note += "; deferred, as a part of bytes: checkpoints and the sync at the end"
    else:
        note += "; all figures: --figures"
    console.print(f"[dim]{escape(note)}[/dim]")
    if found := sorted(
        filter(None, {text.regime_meaning(case) for case in summary.measured_cases})
    ):
        console.print(f"[dim]regime {escape('; '.join(found))}[/dim]")
    if figures and (paying := paying_note(summary)):
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


def _print_cases(console: Console, summary: RunSummary) -> None:
    """Print one table of the cases that were reached, no wider than the terminal."""
    found = case_table(summary)
    rows = [row for row in found.rows if _is_shown(row[0])]
    wide = _table_of_cases(summary, found, rows, is_named=False)
    unlimited = console.options.update(max_width=_UNLIMITED)
    if Measurement.get(console, unlimited, wide).maximum > console.width:
        wide = _table_of_cases(summary, found, rows, is_named=True)
    console.print(wide)
    if any(summary.partial(case) for case, _, _ in rows):
        console.print("[yellow]*[/yellow] not every seed was measured")


def _table_of_cases(
    summary: RunSummary,
    table_of_cases: CaseTable,
    rows: Sequence[tuple[CaseSummary, tuple[str, ...], tuple[NotedCell, ...]]],
    *,
    is_named: bool,
) -> Table:
    """Return the table, with a column for each field, or with one of names that may be wrapped."""
    titles = ("case",) if is_named else table_of_cases.titles
    table = new_table(
        *left(*(title.replace("_", "_\n") for title in titles)),
        *right(*(_wrap_title(head, _HEAD) for head in table_of_cases.heads)),
        *left("durability"),
    )
    # A mark before the names stays beside them where they are wrapped.
    has_risks = any(map(_is_marked, (case for case, _, _ in rows)))
    for case, values, cells in rows:
        names = [escape(name) for name in ((case.label,) if is_named else values)]
        mark = "[yellow]![/yellow] " if _is_marked(case) else "  "
        names[0] = mark * has_risks + names[0]
        names[-1] += " [yellow]*[/yellow]" * bool(summary.partial(case))
        power_cuts = _durability(case) if case.figures.seeds else ""
        table.add_row(*names, *(cell.text for cell in cells), power_cuts)
    return table


def _is_marked(case: CaseSummary) -> bool:
    """Return whether a measured case's settings put something at risk, or may."""
    return bool(case.figures.seeds and (case.hazards or case.unknowns))


def _is_shown(case: CaseSummary) -> bool:
    """Return whether a case has a row: print_warnings() counts those that were not reached."""
    return bool(case.status != "pending" or case.figures.seeds)


def _print_figures(console: Console, summary: RunSummary) -> None:
    """Print the overview's figures with their spread, in as many tables as the width needs."""
    columns = overview_columns(summary)
    # A long title is wrapped, so that the table is no wider than its numbers need.
    titles = right(*(_wrap_title(title, _TITLE) for title, _ in columns))
    rows = []
    for case in filter(_is_shown, summary.cases):
        if not case.figures.seeds:
            rows.append([escape(case.label), f"[dim]{case.status}[/dim]"])
            continue
        mark = "[yellow]![/yellow] " * _is_marked(case)
        label = mark + escape(case.label)
        if partial := summary.partial(case):
            label += f"\n[yellow]{partial}[/yellow]"
        rows.append([label, *(_with_spread(case, name) for _, name in columns), _durability(case)])
    print_wide_table(console, [*left(case_title(summary)), *titles, *left("durability")], rows)


def _wrap_title(title: str, width: int) -> str:
    return textwrap.fill(title, width, break_long_words=False)


def _print_risks(console: Console, summary: RunSummary) -> None:
    """Print what the marks of cases mean, once for all, and where power cuts showed otherwise."""
    for sentence, where in hazards.cases_by_sentence(summary.measured_cases).items():
        console.print(f"[yellow]! at risk[/yellow] {escape(f'{sentence} ({where})')}")
    for case in summary.measured_cases:
        if words := durability.contradiction(case):
            line = f"{case.label}: {words}; {durability.verdict_sentence(case)}"
            console.print(f"[bold yellow]power cuts[/bold yellow] {escape(line)}")


def _durability(case: CaseSummary) -> str:
    """Return what power cuts left of a case, as its row shows it."""
    words = escape(textwrap.fill(durability.outcome_words(case), _DURABILITY_WIDTH))
    if case.durability is None:
        return f"[dim]{words}[/dim]"
    return f"[yellow]{words}[/yellow]" if case.durability.is_unsafe else words


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
        if missing.is_incomplete:
            reasons = "; ".join(missing.in_words)
            console.print(f"[bold red]incomplete[/bold red] {escape(f'{case.label}: {reasons}')}")
        for note in missing.notes:
            console.print(f"[yellow]note[/yellow] {escape(case.label)}: {escape(note)}")
    for status in ("failed", "skipped", "pending"):
        cases = (case for case in summary.cases if case.status == status)
        named = [f"{escape(case.label)}: {escape(case.reason)}" for case in cases]
        print_some(console, f"[yellow]{status}[/yellow]", named, "joj show --json")


def print_case(console: Console, case: CaseSummary, *, figures: bool = False) -> None:
    """Print a case: whose the I/O of a live trace was, its bill, its risks, and with `figures`, or
    without a bill, every figure.
    """
    print_live_trace(console, case)
    if case.bill:
        name = text.transaction_name([case]).lower()
        print_bill(console, case.bill, name, is_whole=figures)
    if figures or not case.bill:
        _print_every_figure(console, case)
    for sentence in hazards.hazard_sentences(case.hazards):
        console.print(f"[bold yellow]at risk[/bold yellow] {escape(sentence)}")
    for sentence in hazards.doubt_sentences(case.unknowns):
        console.print(f"[bold yellow]safety not known[/bold yellow] {escape(sentence)}")
    print_durability(console, case, "power cuts")
    if figures or not case.bill:
        for seed, hashed in case.operation_hashes.items():
            console.print(f"[dim]operations of seed {seed}: {hashed}[/dim]")
    for seed, load in case.backgrounds.items():
        did = ", ".join(f"{name} {value}" for name, value in load.get("did", {}).items())
        console.print(escape(f"background of seed {seed}: {load.get('kind')}: {did}"))
    if not case.bill and (told := apart_words(case.apart)):
        console.print(escape(told))
    for words in filter(None, (line for lines in program_lines(case) for line in lines)):
        console.print(escape(words))


def _print_every_figure(console: Console, case: CaseSummary) -> None:
    if not case.figures.median:
        return
    table = new_table(*left("figure"), *right("median"), *left("[min–max]", ""))
    for name, each in FIGURES.items():
        if name in case.figures.median:
            table.add_row(
                name,
                text.figure(name, case.figures.median[name]),
                escape(text.spread(name, case.figures.spread[name])),
                f"[dim]{each.meaning}[/dim]",
            )
    console.print(table)


def print_durability(console: Console, case: CaseSummary, subject: str) -> None:
    """Print what power cuts left of one case, a fact a line, and what contradicts the manuals."""
    console.print(f"[bold]{subject}[/bold]: {escape(durability.verdict_sentence(case))}")
    if words := durability.contradiction(case):
        console.print(f"[bold yellow]{words}[/bold yellow]")
    if case.durability:
        sentences = (
            durability.moments(case),
            durability.worst_sentence(case),
            durability.needs_sentence(case),
            *durability.cause_sentences(case),
            durability.boot_sentence(case),
        )
        for line in filter(None, sentences):
            console.print(f"[dim]{escape(line)}[/dim]")


def _with_spread(case: CaseSummary, figure: str) -> str:
    if figure not in case.figures.median:
        return "–"
    value = text.figure(figure, case.figures.median[figure])
    ends = text.spread(figure, case.figures.spread[figure])
    return f"{value}\n[dim]{escape(ends)}[/dim]" if ends else value


def print_pivot(console: Console, pivot: Pivot, summary: RunSummary) -> None:
    """Print one figure in its own unit; a case that lacks a seed, or is at risk, is marked."""
    console.print(f"[bold]{pivot.figure}[/bold]: {escape(FIGURES[pivot.figure].meaning)}")
    # The name of the field across comes before its values.
    columns = [*left(*pivot.down, f"{pivot.across}:"), *right(*map(str, pivot.columns))]
    rows = []
    for key, cells in pivot.rows:
        shown = [
            "–"
            if cell is None
            else text.figure(pivot.figure, cell[0])
            + (" *" if summary.partial(cell[1]) else "")
            + (" !" if durability.risk(cell[1]) else "")
            for cell in cells
        ]
        rows.append([*(escape("–" if v is None else str(v)) for v in key), "", *shown])
    print_wide_table(console, columns, rows, naming=len(pivot.down) + 1)
    if any(summary.partial(cell[1]) for _, cells in pivot.rows for cell in cells if cell):
        console.print("[yellow]*[/yellow] not every seed was measured")
    shown_cases = [cell[1] for _, cells in pivot.rows for cell in cells if cell]
    for sentence, where in hazards.cases_by_sentence(shown_cases).items():
        mark = "safety" if sentence.startswith(hazards.NOT_KNOWN) else "at risk"
        console.print(f"[yellow]! {mark}[/yellow] {escape(f'{sentence} ({where})')}")
    for case in shown_cases:
        if case.durability and case.durability.is_unsafe:
            line = escape(f"{case.label}: {durability.outcome_words(case)}")
            console.print(f"[yellow]! power cuts[/yellow] {line}")
    console.print(f"[dim]power cuts: {durability.summarise_durability(shown_cases)}[/dim]")


def write_pivot(stream: TextIO, pivot: Pivot) -> None:
    """Write a pivot as CSV: the figure's name, the axes, and a column for each value across."""
    writer = csv.writer(CsvStream(stream), lineterminator="\n")
    writer.writerow(["figure", *pivot.down, *(f"{pivot.across}={v}" for v in pivot.columns)])
    for key, cells in pivot.rows:
        writer.writerow([pivot.figure, *key, *("" if cell is None else cell[0] for cell in cells)])


def write_cases(stream: TextIO, cases: Sequence[CaseSummary]) -> None:
    """Write a line a case as CSV: seeds, risk, durability, fields, and the medians of figures."""
    fields = list(dict.fromkeys(name for case in cases for name in case.case))
    figures = [name for name in FIGURES if any(name in case.figures.median for case in cases)]
    # A few figures have the name of a field, such as transactions.
    heads = [f"case_{name}" if name in figures else name for name in fields]
    writer = csv.writer(CsvStream(stream), lineterminator="\n")
    columns = ["case_id", "status", "seeds", "at_risk", "durability"]
    writer.writerow([*columns, *heads, *figures])
    for case in cases:
        writer.writerow(
            [case.case_id, case.status, len(case.figures.seeds)]
            + [hazards.manuals(case), durability.outcome_words(case)]
            + [case.case.get(name, "") for name in fields]
            + [case.figures.median.get(name, "") for name in figures]
        )


_BAR_COLUMNS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"
# sqlite_compile_options has a hundred words, too many for a terminal; --json has them.
_LEFT_OUT = ("sqlite_compile_options",)


def print_live(console: Console, summary: RunSummary) -> None:
    """Print the short answer, and every case of a live run in full."""
    print_answer(console, answer_lines(summary))
    for case in summary.cases:
        print_case(console, case)
        print_latencies(console, case)
        print_configuration(console, case)
    print_warnings(console, summary)
    console.print(f"[dim]{escape(text.clocks(summary.clocks))}[/dim]")


def print_configuration(console: Console, case: CaseSummary) -> None:
    """Print the effective configuration, as it was read back."""
    table = new_table(*left("", ""), has_header=False)
    for name, value in flatten(case.configuration).items():
        if name not in _LEFT_OUT:
            shown = value if isinstance(value, str) else json.dumps(value)
            shown = "unknown" if value is None else shown
            table.add_row(escape(name), escape(shown))
    console.print("[bold]effective configuration, as read back[/bold]")
    console.print(table)


def print_latencies(console: Console, case: CaseSummary) -> None:
    """Draw a histogram of latencies; every bar that is not empty is visible."""
    bins = case.latencies
    most = max((each.count for each in bins), default=0)
    console.print(f"[bold]latency[/bold] {text.latency_interval([case])}, all seeds")
    table = new_table(*right(""), *left(""), *right(""), has_header=False)
    for each in bins:
        bar = _bar(each.count / most) if each.count else ""
        table.add_row(f"from {text.duration(each.begin_ns)}", bar, str(each.count))
    console.print(table)


def _bar(share: float) -> str:
    """Return a bar of up to _BAR_COLUMNS columns, in eighths of one; never an empty one."""
    eighths = max(1, round(share * _BAR_COLUMNS * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
