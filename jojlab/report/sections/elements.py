"""Pieces of HTML: tables, charts, commands, banners. Everything that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# The charts (Vega-Lite) or pictures of a page, by the name of their place.
Specs = dict[str, dict[str, Any]]
# A cell: its text, what stands small below it, line by line, and the style of that (CSS class).
Cell = str | tuple[str, str] | tuple[str, str, str]


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, words: int = 1, last: str = ""
) -> str:
    """Return a table; the first `words` columns are text, the others numbers, to the right.

    `last` is the class of its last row, such as total.
    """
    side = ["" if i < words else ' class="n"' for i in range(len(columns))]
    head = "".join(f"<th{s}>{escape(c)}</th>" for s, c in zip(side, columns, strict=True))
    rows = list(rows)
    body = []
    for place, row in enumerate(rows):
        mark = f' class="{last}"' if last and place == len(rows) - 1 else ""
        cells = "".join(f"<td{s}>{_cell(c)}</td>" for s, c in zip(side, row, strict=True))
        body.append(f"<tr{mark}>{cells}</tr>")
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Return names and values, two columns without a head."""
    body = "".join(
        f'<tr><td>{escape(name)}</td><td class="long"><code>{escape(value)}</code></td></tr>'
        for name, value in rows
    )
    return f'<div class="scroll"><table><tbody>{body}</tbody></table></div>'


def chart(name: str, label: str) -> str:
    """Return the place of chart `name`; `label` says to readers of the text what it shows."""
    return (
        f'<figure style="margin:0"><div class="chart" id="{escape(name)}" role="img" '
        f'aria-label="{escape(label)}"></div></figure>'
    )


def picture(name: str, label: str) -> str:
    """Return the place of picture `name`, which lba.js draws."""
    return f'<div class="lba" id="{escape(name)}" role="img" aria-label="{escape(label)}"></div>'


def ask(*commands: str) -> str:
    """Return the commands that give the numbers above again."""
    return "".join(f'<code class="ask">{escape(command)}</code>' for command in commands)


def section(name: str, title: str, *parts: str) -> str:
    """Return a section that the page's index can point at."""
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of text."""
    mark = f' class="{style}"' if style else ""
    return f"<p{mark}>{escape(text)}</p>"


def details(title: str, soft: str, *parts: str, is_open: bool = False) -> str:
    """Return a part that opens; print opens all."""
    return (
        f"<details{' open' if is_open else ''}><summary>{escape(title)}"
        f'<span class="soft">{escape(soft)}</span></summary>{"".join(parts)}</details>'
    )


def numbers(table: str, cases: int) -> str:
    """Return the table beside a chart; closed when it is long, as the chart shows it already."""
    return details("The numbers", f"{cases} cases", table) if cases > 10 else table


def banner(style: str, title: str, lines: Iterable[str]) -> str:
    """Return a loud note of style bad or warn, or nothing when there is no line."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    if not items:
        return ""
    return (
        f'<div class="banner {style}" role="alert"><strong>{escape(title)}</strong>'
        f"<ul>{items}</ul></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    text, small, *style = cell
    mark = escape(" ".join(["spread", *style]))
    lines = [f'<span class="{mark}">{escape(line)}</span>' for line in small.splitlines()]
    return escape(text) + "".join(lines)
