"""Prints a device profile on one screen; computes nothing but the distance to a stated figure."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.device.profile import INTERFACES, Profile

# Characters that two columns of the longest names and values take.
_TWO_COLUMNS = 90


def print_device(
    console: Console, profile: Profile, figures: Mapping[str, int], *, sources: bool
) -> None:
    """Print parameters in two columns, or one per line with its source; then the figures."""
    console.print(f"[bold]{escape(profile.name)}[/bold]  {escape(profile.title)}")
    console.print(_with_sources(profile) if sources else _in_columns(profile, console.width))
    table = Table(box=None, pad_edge=False)
    for title, side in (("figure", "left"), ("model", "right"), ("stated", "right")):
        table.add_column(title, justify="right" if side == "right" else "left", no_wrap=True)
    table.add_column("off by", justify="right", no_wrap=True)
    table.add_column("meaning; source of the stated figure")
    stated = {row.figure: row for row in profile.stated}
    for name, meaning in INTERFACES[profile.interface].figures.items():
        if row := stated.get(name):
            off = f"{figures[name] / row.value - 1:+.1%}"
            said = f"{meaning}; {row.source}"
            if row.sets:
                said += f"; no check: {row.sets} was set from it"
            table.add_row(name, f"{figures[name]:,}", f"{row.value:,}", off, escape(said))
        else:
            table.add_row(name, f"{figures[name]:,}", "", "", escape(meaning))
    console.print(table)


def _in_columns(profile: Profile, width: int) -> Table:
    """Two columns of parameters; one where two would be cut."""
    table = Table(box=None, pad_edge=False, show_header=False)
    rows = [
        (name, f"{value:,}") for name, value in profile.model.items() if _is_told(profile, name)
    ]
    columns = 2 if width >= _TWO_COLUMNS else 1
    for side in ("left", "right") * columns:
        table.add_column(justify="right" if side == "right" else "left", no_wrap=True)
    if columns == 1:
        for row in rows:
            table.add_row(*row)
        return table
    half = (len(rows) + 1) // 2
    for left, right in zip(rows[:half], [*rows[half:], ("", "")], strict=False):
        table.add_row(*left, *right)
    return table


def _with_sources(profile: Profile) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    for name, value in profile.model.items():
        if _is_told(profile, name):
            table.add_row(name, f"{value:,}", escape(profile.sources.get(name, "")))
    return table


def _is_told(profile: Profile, name: str) -> bool:
    """Whether the file has the key, or the device has the mechanism all the same."""
    return name in profile.sources or profile.model[name] != 0
