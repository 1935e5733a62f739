"""Prints how well a replay kept to its recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.replay_result import CallSum, ReplayResult
from jojlab.report.shared import text
from jojlab.report.shared.console import left, print_table, right

# Names and threads that are listed; --json has all.
_MOST_ROWS = 20
_MOST_DATABASES = 3


def print_replay(console: Console, replay: ReplayResult) -> None:
    """Print what was done of a recording, what was not, and how late."""
    share = "unknown" if replay.fidelity is None else f"{replay.fidelity:.2%}"
    console.print(
        f"[bold]{replay.calls:,} of {replay.recorded_calls:,} recorded calls made[/bold]; "
        f"fidelity {share} (ended as recorded)"
    )
    if replay.calls_without_end:
        console.print(
            f"{text.integer(replay.calls_without_end, 'call')} of whose end the recording tells "
            "nothing: made as begun, and what came of it is compared with nothing"
        )
    _sums(console, "call", replay.call_sums, replay.first_otherwise)
    if len(replay.thread_sums) > 1:
        _sums(console, "thread", replay.thread_sums, {})
    if replay.idle_threads:
        listed = ", ".join(map(str, replay.idle_threads[:_MOST_ROWS]))
        more = ", ..." if len(replay.idle_threads) > _MOST_ROWS else ""
        console.print(f"[dim]threads of whose calls none was made: {listed}{more}[/dim]")
    _counts(console, "about no file of a disk", replay.elsewhere)
    _counts(console, "carried out by other calls", replay.carried)
    if replay.kept_writes:
        console.print(
            f"{text.integer(replay.kept_writes, 'write')} with the recorded contents, "
            f"{replay.seeded_writes:,} with contents made from the seed"
        )
    if replay.databases_before:
        listed = ", ".join(replay.databases_before[:_MOST_DATABASES])
        more = ", ..." if len(replay.databases_before) > _MOST_DATABASES else ""
        console.print(
            f"databases that were there before: {escape(listed)}{more}; what was in them is not "
            "recorded, and was made from the seed"
        )
    if replay.recorded_architecture not in (None, replay.architecture):
        console.print(
            f"recorded on {replay.recorded_architecture}, made on {replay.architecture}: numbers "
            "of calls and flags of open are each machine's own"
        )
    if replay.start_error_ns:
        late = ", ".join(
            f"{name} {text.duration(ns)}" for name, ns in replay.start_error_ns.items()
        )
        console.print(f"calls began late by {late}")
    for reason in replay.incomplete_reasons:
        console.print(f"[bold red]incomplete[/bold red] {escape(reason)}")


def _sums(console: Console, title: str, sums: Iterable[CallSum], first: Mapping[str, int]) -> None:
    rows = [
        (
            escape(each.name),
            f"{each.calls:,}",
            text.duration(each.time_ns),
            f"{each.otherwise:,}",
            f"first: call {first[each.name]}" if each.name in first else "",
        )
        for each in sums
    ]
    columns = (*left(title), *right("calls", "time", "otherwise"), *left(""))
    print_table(console, columns, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        console.print(f"[dim]and {len(rows) - _MOST_ROWS} more[/dim]")


def _counts(console: Console, title: str, counts: Mapping[str, int]) -> None:
    if counts:
        listed = ", ".join(f"{calls:,} {name}" for name, calls in sorted(counts.items()))
        console.print(f"[dim]{title}: {escape(listed)}[/dim]")
