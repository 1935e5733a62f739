"""The lines of a short answer: at most six of 100 columns, with numbers of three digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.markup import escape

from jojlab.model.figures import Number
from jojlab.report.shared import text

MOST_LINES = 6
MOST_COLUMNS = 100
_DIGITS = 3
_INCOMPLETE = "Incomplete: "
_MORE = " (and more)."

# A line with its rank: the lines of the highest rank are left out where there are too many.
RankedLine = tuple[int, str]


def fit_lines(lines: Iterable[RankedLine], incomplete: str = "") -> tuple[str, ...]:
    """Return the lines that an answer has room for; that data is missing always stands last."""
    filled = [(rank, line) for rank, line in lines if line]
    room = MOST_LINES - bool(incomplete)
    places = sorted(sorted(range(len(filled)), key=lambda place: filled[place][0])[:room])
    shown = [filled[place][1] for place in places]
    return tuple(_fit(line) for line in (*shown, incomplete) if line)


def print_answer(console: Console, lines: Iterable[str]) -> None:
    """Print the short answer, and an empty line after it."""
    for place, line in enumerate(lines):
        shown = escape(line)
        console.print(f"[bold]{shown}[/bold]" if place == 0 else shown)
    console.print()


def sentence(parts: Iterable[str], begin: str = "", between: str = "; ") -> str:
    """Return as many parts as fit into a line, as a sentence; empty where there are none."""
    line = ""
    for part in filter(None, parts):
        longer = f"{line}{between}{part}" if line else begin + part
        if line and len(longer) + 1 > MOST_COLUMNS:
            break
        line = longer
    return f"{line}." if line else ""


def incomplete_line(missing: Sequence[str]) -> str:
    """Return what is missing, the first first, in a line: what it has no room for is counted. Empty
    where nothing is missing.
    """
    if not missing:
        return ""
    for told in range(len(missing), 0, -1):
        left = len(missing) - told
        more = f"; and {left} more" if left else ""
        line = f"{_INCOMPLETE}{'; '.join(missing[:told])}{more}."
        if len(line) <= MOST_COLUMNS:
            return line
    counted = f"{_INCOMPLETE}{count(len(missing), 'reason')}, too long for this line."
    return next(_heads(line, len(_INCOMPLETE)), counted)


def _fit(line: str) -> str:
    """Return a line that is no longer than MOST_COLUMNS: the clauses that fit, in whole words. Of a
    name that is longer than a line alone the end is left out.
    """
    if len(line) <= MOST_COLUMNS:
        return line
    return next(_heads(line), f"{line[: MOST_COLUMNS - 1]}…")


def _heads(line: str, least: int = 0) -> Iterator[str]:
    """Yield the beginnings of a sentence that fit and end with a clause, the longest first."""
    for end in reversed([match.start() for match in re.finditer(r"[;:,] | \(", line)]):
        head = line[:end]
        is_whole = head.count("(") == head.count(")")
        if is_whole and least < end <= MOST_COLUMNS - len(_MORE):
            yield head + _MORE


def range_words(ends: tuple[Number, Number], formatter: Callable[[Number], str]) -> str:
    """Return "2.84 to 25.8 ms", or one value where the ends show alike."""
    low, high = (formatter(end) for end in ends)
    if low == high:
        return low
    value, _, unit = low.partition(" ")
    return f"{value if unit and high.endswith(f' {unit}') else low} to {high}"


def duration(value_ns: Number) -> str:
    """Return nanoseconds as 5.03 ms."""
    return text.duration(value_ns, _DIGITS)


def size(value_bytes: Number) -> str:
    """Return bytes as 9.2 KiB, 1.5 MiB or 2 GiB."""
    for unit, unit_bytes in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if value_bytes >= unit_bytes:
            return f"{number(value_bytes / unit_bytes)} {unit}"
    return text.size(value_bytes, _DIGITS)


def number(value: Number) -> str:
    """Return three digits that count."""
    return text.digits(value, _DIGITS)


def count(value: Number, one: str, several: str = "") -> str:
    """Return how many there are, as 1 flush or 2.5 flushes; `several` where it is not one's + s."""
    return f"{number(value)} {one if value == 1 else several or one + 's'}"


def percent(share: float) -> str:
    """Return a share as 12.3 %."""
    return f"{number(round(share * 100, 1))} %"
