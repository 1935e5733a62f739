"""The console of standard output, and what every table on it looks like."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from jojlab.foundation.printable import printable


class QuietConsole(Console):
    """A console that sends no text's control characters, and leaves closed pipes to cli.py."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of markup: here, as its width counts from now on."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of anything; those that are rich's own commands as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        """Raise what happened; rich would exit with 1."""
        raise BrokenPipeError


# The columns of lines that people read, where they are not on a terminal.
READABLE = 100
_UNCUT = 10_000


def terminal(piped: int = _UNCUT, *, stderr: bool = False) -> QuietConsole:
    """Return the console of standard output, or error; piped text has so many columns."""
    stream = sys.stderr if stderr else sys.stdout
    return QuietConsole(width=None if stream.isatty() else piped, highlight=False, stderr=stderr)


# Blanks between two columns of a table.
_BETWEEN = 2
# Lines of one kind, such as cases that were not reached: a run may have ten thousand.
_MOST_LINES = 10


def print_some(console: Console, title: str, lines: Sequence[str], command: str) -> None:
    """Print each line of markup after `what`; of many the first, and how many `command` has."""
    for line in lines[:_MOST_LINES]:
        console.print(f"{title} {line}")
    if (further := len(lines) - _MOST_LINES) > 0:
        console.print(f"{title} {further:,} more: {command} names them")


Column = tuple[str, str]


def left(*titles: str) -> tuple[Column, ...]:
    """Return columns of words."""
    return tuple((title, "left") for title in titles)


def right(*titles: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple((title, "right") for title in titles)


def new_table(*columns: Column, has_header: bool = True) -> Table:
    """Return an empty table of columns (title, side); numbers, on the right, are not wrapped, and
    of words on the left, where they are wrapped, no letter is left out.
    """
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, _BETWEEN, 0, 0))
    table.show_header = has_header
    for title, side in columns:
        table.add_column(
            escape(title),
            justify="right" if side == "right" else "left",
            no_wrap=side == "right",
            overflow="ellipsis" if side == "right" else "fold",
        )
    return table


def print_table(console: Console, columns: Iterable[Column], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of markup."""
    table = new_table(*columns)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def print_wide_table(
    console: Console, columns: Sequence[Column], rows: Iterable[Sequence[str]], naming: int = 1
) -> None:
    """Print a table of markup; where it is wider than the terminal, several below one another. The
    first columns, so many, name the rows, and stand in each.
    """
    cells = [[*row, *[""] * (len(columns) - len(row))] for row in rows]
    widths = [
        max(_width(text) for text in (escape(title), *(row[place] for row in cells)))
        for place, (title, _) in enumerate(columns)
    ]
    room = console.width - sum(width + _BETWEEN for width in widths[:naming])
    groups: list[list[int]] = [[]]
    for place in range(naming, len(columns)):
        taken = sum(widths[other] + _BETWEEN for other in groups[-1])
        if groups[-1] and taken + widths[place] > room:
            groups.append([])
        groups[-1].append(place)
    for group in groups:
        chosen = [*range(naming), *group]
        shown = ([row[place] for place in chosen] for row in cells)
        print_table(console, [columns[place] for place in chosen], shown)


def _width(markup: str) -> int:
    """Return the columns of a terminal that the longest line of a cell takes."""
    return max(line.cell_len for line in Text.from_markup(markup).split(allow_blank=True))


def print_rows(console: Console, columns: list[str], rows: list[list[object]]) -> None:
    """Print the answer of a query; numbers stand to the right, null as a dot."""
    numeric = [
        all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        for i in range(len(columns))
    ]
    titles = zip(columns, ("right" if n else "left" for n in numeric), strict=True)
    cells = (["·" if value is None else escape(str(value)) for value in row] for row in rows)
    print_table(console, titles, cells)
