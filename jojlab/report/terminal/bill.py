"""Prints what one commit costs, row by row, and its deferred I/O."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.figures.figure import CAUSED
from jojlab.report.terminal.console import new_table
from jojlab.report.words import cost, flash_life, reasons, text


def print_bill(console: Console, bill: Bill, what: str = "commit") -> None:
    """Print what one commit costs, row by row, and its deferred I/O; `what` a commit is called."""
    total = bill.total(*CAUSED)
    console.print(
        f"[bold]one {what}[/bold]: {text.digits(bill.per_commit(total.requests))} requests "
        f"({text.digits(bill.per_commit(total.flushes))} of them flushes), "
        f"{text.kib(bill.per_commit(total.bytes))} KiB, "
        f"p50 {text.duration(bill.latency_ns['latency_ns_p50'])}"
        f"  [dim](over {bill.transactions} {what}s)[/dim]"
    )
    for sentence in filter(None, (cost.deferred_of(bill), cost.beside(bill.apart))):
        console.print(escape(sentence))
    table = new_table(
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
            _add_rows(table, bill, bill.part(part), total.bytes if part in CAUSED else 0)
    console.print(table)
    for part in ("commit", "deferred"):
        told = (*reasons.sentences(bill, part), *reasons.journal_sentences(bill, part))
        for sentence in told:
            console.print(escape(sentence if part == "commit" else f"deferred: {sentence}"))
    for sentence in flash_life.sentences(bill):
        console.print(escape(sentence))


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
