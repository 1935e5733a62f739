"""Prints how well a replay kept to its recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.run.replayed import CallSum, Replayed
from jojlab.report.shared import text

# Names and threads that are listed; --json has all.
_MOST_ROWS = 20
_MOST_DATABASES = 3


def print_replay(console: Console, found: Replayed) -> None:
    """Print what was done of a recording, what was not, and how late."""
    share = "unknown" if found.fidelity is None else f"{found.fidelity:.2%}"
    console.print(
        f"[bold]{found.calls:,} of {found.recorded_calls:,} recorded calls made[/bold]; "
        f"fidelity {share} (ended as recorded)"
    )
    if found.calls_without_end:
        console.print(
            f"{text.integer(found.calls_without_end, 'call')} of whose end the recording tells "
            "nothing: made as begun, and what came of it is compared with nothing"
        )
    _sums(console, "call", found.by_name, found.first_otherwise)
    if len(found.by_thread) > 1:
        _sums(console, "thread", found.by_thread, {})
    if found.idle_threads:
        listed = ", ".join(map(str, found.idle_threads[:_MOST_ROWS]))
        more = ", ..." if len(found.idle_threads) > _MOST_ROWS else ""
        console.print(f"[dim]threads of whose calls none was made: {listed}{more}[/dim]")
    _counts(console, "about no file of a disk", found.elsewhere)
    _counts(console, "carried out by other calls", found.carried)
    if found.kept_writes:
        console.print(
            f"{text.integer(found.kept_writes, 'write')} with the recorded contents, "
            f"{found.seeded_writes:,} with contents made from the seed"
        )
    if found.databases_before:
        listed = ", ".join(found.databases_before[:_MOST_DATABASES])
        more = ", ..." if len(found.databases_before) > _MOST_DATABASES else ""
        console.print(
            f"databases that were there before: {escape(listed)}{more}; what was in them is not "
            "recorded, and was made from the seed"
        )
    if found.recorded_architecture not in (None, found.architecture):
        console.print(
            f"recorded on {found.recorded_architecture}, made on {found.architecture}: numbers of "
            "calls and flags of open are each machine's own"
        )
    if found.start_error_ns:
        late = ", ".join(f"{name} {text.duration(ns)}" for name, ns in found.start_error_ns.items())
        console.print(f"calls began late by {late}")
    for reason in found.incomplete_reasons:
        console.print(f"[bold red]incomplete[/bold red] {escape(reason)}")


def _sums(console: Console, title: str, sums: Iterable[CallSum], first: Mapping[str, int]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(title)
    for column in ("calls", "time", "otherwise"):
        table.add_column(column, justify="right")
    table.add_column("")
    rows = list(sums)
    for each in rows[:_MOST_ROWS]:
        where = f"first: call {first[each.name]}" if each.name in first else ""
        cells = (f"{each.calls:,}", text.duration(each.time_ns), f"{each.otherwise:,}")
        table.add_row(escape(each.name), *cells, where)
    console.print(table)
    if len(rows) > _MOST_ROWS:
        console.print(f"[dim]and {len(rows) - _MOST_ROWS} more[/dim]")


def _counts(console: Console, what: str, counts: Mapping[str, int]) -> None:
    if counts:
        listed = ", ".join(f"{calls:,} {name}" for name, calls in sorted(counts.items()))
        console.print(f"[dim]{what}: {escape(listed)}[/dim]")
