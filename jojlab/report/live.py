"""What a live trace saw of each program, in the terminal: one line for each, the watched first."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.traffic.live import LiveTrace, ProcessIo
from jojlab.foundation.printable import printable
from jojlab.report.shared import text
from jojlab.report.shared.console import new_table

_MOST_PROCESSES = 8


def print_live_trace(console: Console, live: LiveTrace, subject: str) -> None:
    """Print the I/O of the watched processes, and in one line each that of others, and that of
    which it is not known whose it was.
    """
    table = new_table(
        ("process", "left"), ("written", "right"), ("writes", "right"),
        ("read", "right"), ("flushes", "right"),
    )  # fmt: skip
    watched = [each for each in live.processes if each.is_watched]
    rows = [(each.process or "(a kernel thread)", each) for each in watched[:_MOST_PROCESSES]]
    if further := watched[_MOST_PROCESSES:]:
        rows.append((f"{len(further)} more", ProcessIo.added(further)))
    if len(watched) != 1:
        rows.insert(0, (f"{subject}, in all", live.watched))
    rows.append(("other processes", live.others))
    rows.append(("not known whose", live.unknown))
    for name, io in rows:
        table.add_row(
            escape(printable(name)),
            text.size(io.write_bytes),
            f"{io.writes:,}",
            text.size(io.read_bytes),
            f"{io.flushes:,}",
        )
    console.print(table)
