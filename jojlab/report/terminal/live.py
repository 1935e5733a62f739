"""Prints a live run: figures, a histogram of its latencies, and its effective configuration."""

from __future__ import annotations

import json

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.run.differences import flatten
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.terminal.summary import print_case, print_warnings
from jojlab.report.words import text, transaction

_BAR_COLUMNS = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"
# sqlite_compile_options has a hundred words, too many for a terminal; --json has them.
_LEFT_OUT = ("sqlite_compile_options",)


def print_live(console: Console, summary: RunSummary) -> None:
    """Print every case of a live run in full."""
    for case in summary.cases:
        print_configuration(console, case)
        print_case(console, case)
        print_latencies(console, case)
    print_warnings(console, summary)
    console.print(f"[dim]{escape(text.clocks(summary.clocks))}[/dim]")


def print_configuration(console: Console, case: CaseSummary) -> None:
    """Print the effective configuration, as it was read back."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
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
    console.print(f"[bold]latency[/bold] {transaction.latency([case])}, all seeds")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for side in ("right", "left", "right"):
        table.add_column(justify="right" if side == "right" else "left", no_wrap=True)
    for each in bins:
        bar = _bar(each.count / most) if each.count else ""
        table.add_row(f"from {text.duration(each.begin_ns)}", bar, str(each.count))
    console.print(table)


def _bar(share: float) -> str:
    """Return a bar of up to _BAR_COLUMNS columns, in eighths of one; never an empty one."""
    eighths = max(1, round(share * _BAR_COLUMNS * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
