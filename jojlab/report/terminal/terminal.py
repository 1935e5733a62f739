"""Prints summaries, bills, comparisons and answers of queries as tables; computes nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.figures.case_figures import FIGURES
from jojlab.analysis.run.compare import Comparison
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.traffic.characterisation import Characterisation
from jojlab.report.terminal.statements import print_statements
from jojlab.report.words import kind_rows, reasons, text
from jojlab.report.words.overview import overview_columns


class QuietConsole(Console):
    """A console that leaves a closed pipe to the command line, which ends without noise."""

    def on_broken_pipe(self) -> None:
        """Raise what happened; rich would exit with 1."""
        raise BrokenPipeError


def terminal() -> QuietConsole:
    """Return the console of standard output; piped text is never cut."""
    width = None if sys.stdout.isatty() else 10_000
    return QuietConsole(width=width, highlight=False)


def print_summary(console: Console, summary: RunSummary) -> None:
    """Print the question, one line per case, and what is missing."""
    if summary.question:
        console.print(f"[bold]{escape(summary.question)}[/bold]")
    for part in summary.parts:
        if summary.is_composed:
            console.print(f"\n[bold]{escape(part.name)}[/bold]: {escape(part.question)}")
        _print_overview(console, summary.of_part(part))
        print_statements(console, part)
    seeds = len(summary.seeds)
    over = f"median [min–max] of {seeds} seeds" if seeds > 1 else "one seed"
    note = f"per commit; {over}; deferred: checkpoints and the sync at the end"
    console.print(f"[dim]{escape(note)}[/dim]")
    print_warnings(console, summary)
    print_fingerprint(console, summary)


def _print_overview(console: Console, summary: RunSummary) -> None:
    columns = overview_columns(summary)
    table = _table(("case", "left"), *((title, "right") for title, _ in columns))
    for case in summary.cases:
        if not case.figures.seeds:
            table.add_row(escape(case.label), f"[dim]{case.status}[/dim]")
            continue
        table.add_row(escape(case.label), *(_with_spread(case, figure) for _, figure in columns))
    console.print(table)
    for variant in (variant for part in summary.parts for variant in part.variants):
        if variant.unsafe:
            console.print(f"[yellow]unsafe[/yellow] {variant.name}: {escape(variant.unsafe)}")


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
    """Print what is missing in the captures, and the cases without an answer."""
    for case in summary.cases:
        missing = case.missing
        if missing.incomplete:
            console.print(
                f"[bold red]incomplete[/bold red] {escape(case.label)}: "
                f"{missing.lost_events} events lost, "
                f"{missing.unattributed_bytes} bytes without an owner"
            )
            for reason in missing.reasons:
                console.print(f"           {escape(reason)}")
        if case.status != "ok":
            console.print(
                f"[yellow]{case.status}[/yellow] {escape(case.label)}: {escape(case.reason)}"
            )


def print_case(console: Console, case: CaseSummary) -> None:
    """Print every figure of one case, and its bill."""
    table = _table(("figure", "left"), ("median", "right"), ("[min–max]", "left"), ("", "left"))
    for name, meaning in FIGURES.items():
        if name in case.figures.median:
            table.add_row(
                name,
                text.figure(name, case.figures.median[name]),
                escape(text.spread(name, case.figures.spread[name])),
                f"[dim]{meaning}[/dim]",
            )
    console.print(table)
    for seed, hashed in case.operation_hashes.items():
        console.print(f"[dim]operations of seed {seed}: {hashed}[/dim]")
    for seed, load in case.backgrounds.items():
        did = ", ".join(f"{name} {value}" for name, value in load.get("did", {}).items())
        console.print(escape(f"background of seed {seed}: {load.get('kind')}: {did}"))
    if case.bill:
        print_bill(console, case.bill)


def print_bill(console: Console, bill: Bill) -> None:
    """Print what one commit costs, row by row, and what it leaves to be done later."""
    total = bill.total("commit")
    console.print(
        f"[bold]one commit[/bold]: {text.digits(bill.per_commit(total.requests))} requests "
        f"({text.digits(bill.per_commit(total.flushes))} of them flushes), "
        f"{text.kib(bill.per_commit(total.bytes))} KiB, "
        f"p50 {text.duration(bill.latency_ns['latency_ns_p50'])}"
        f"  [dim](over {bill.transactions} commits)[/dim]"
    )
    table = _table(
        ("block type", "left"),
        ("file kind", "left"),
        ("file", "left"),
        ("cause", "left"),
        ("requests", "right"),
        ("KiB", "right"),
        ("share", "right"),
    )
    _add_rows(table, bill, bill.part("commit"), total.bytes)
    for part, title in text.LATER_PARTS.items():
        if bill.part(part):
            table.add_section()
            table.add_row(f"[bold]{title}[/bold]")
            _add_rows(table, bill, bill.part(part), 0)
    console.print(table)
    for part in ("commit", "deferred"):
        told = (*reasons.sentences(bill, part), *reasons.journal_sentences(bill, part))
        for sentence in told:
            console.print(escape(sentence if part == "commit" else f"deferred: {sentence}"))


def print_kinds(console: Console, label: str, kinds: Characterisation) -> None:
    """Print what kind of I/O one case made, and what its devices did."""
    console.print(f"[bold]{escape(label)}[/bold]: {kind_rows.totals_text(kinds)}")
    sides = ("left", "left", *("right",) * (len(kind_rows.COLUMNS) - 2))
    reads = "read" in kinds.operations
    shown = len(kind_rows.COLUMNS) if reads else len(kind_rows.COLUMNS) - 4
    table = _table(*list(zip(kind_rows.COLUMNS, sides, strict=True))[:shown])
    for row in kind_rows.characterisation_cells(kinds):
        table.add_row(*map(escape, row[:shown]))
    console.print(table)
    devices = _table(
        *zip(kind_rows.DEVICE_COLUMNS, ("left", "right", "right", "right"), strict=True)
    )
    for row in kind_rows.device_cells(kinds):
        devices.add_row(*map(escape, row))
    console.print(devices)


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
        table = _table(
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


def print_rows(console: Console, columns: list[str], rows: list[list[object]]) -> None:
    """Print the answer of a query; numbers stand to the right, null as a dot."""
    numeric = [
        all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        for i in range(len(columns))
    ]
    table = _table(*zip(columns, ("right" if n else "left" for n in numeric), strict=True))
    for row in rows:
        table.add_row(*("·" if value is None else escape(str(value)) for value in row))
    console.print(table)


def _add_rows(table: Table, bill: Bill, rows: Iterable[BillRow], whole: int) -> None:
    rows = list(rows)
    for row in rows:
        table.add_row(
            row.block_type
            if row.operation in ("write", "flush")
            else f"{row.block_type} ({row.operation})",
            row.file_kind,
            escape(row.file),
            escape(row.cause),
            text.digits(bill.per_commit(row.requests)),
            text.kib(bill.per_commit(row.bytes)),
            text.percent(row.bytes / whole) if whole else "",
        )
    table.add_row(
        "[bold]total[/bold]",
        "",
        "",
        "",
        f"[bold]{text.digits(bill.per_commit(sum(row.requests for row in rows)))}[/bold]",
        f"[bold]{text.kib(bill.per_commit(sum(row.bytes for row in rows)))}[/bold]",
    )


def _with_spread(case: CaseSummary, figure: str) -> str:
    if figure not in case.figures.median:
        return "–"
    value = text.figure(figure, case.figures.median[figure])
    ends = text.spread(figure, case.figures.spread[figure])
    return f"{value}\n[dim]{escape(ends)}[/dim]" if ends else value


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for title, side in columns:
        table.add_column(
            escape(title), justify="right" if side == "right" else "left", no_wrap=side == "right"
        )
    return table
