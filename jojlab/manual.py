"""Pages of reference made from the code, as Markdown: commands, fields, figures, tables, devices.

Reads the commands as jojlab/cli.py builds them, the declarations of `joj list`, and schema/. The
site shows the pages; man pages are made of them too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.cli import app
from jojlab.command_line.group import parameters_by_heading
from jojlab.commands.list_ import lists
from jojlab.foundation.places import SCHEMA
from jojlab.trace.schema import table_schema


@dataclass(frozen=True)
class Page:
    """One page: `name` is "joj verify durability" or the title, `summary` one line, `text` all."""

    name: str
    summary: str
    text: str

    @property
    def file(self) -> str:
        """The page's file without its ending: joj-verify-durability."""
        return self.name.replace(" ", "-")


def command_pages() -> tuple[Page, ...]:
    """Return the page of joj, and one for each of its commands and of their subcommands."""
    return tuple(_pages(app, "joj", None))


def _pages(command: Any, name: str, parent: Any) -> Iterator[Page]:
    context = _context(command, name, parent)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    below = [(each, command.get_command(context, each)) for each in names]
    yield Page(name, _summary(command), "\n".join(_lines(command, context, name, below)))
    for each, subcommand in below:
        yield from _pages(subcommand, f"{name} {each}", context)


def _context(command: Any, name: str, parent: Any) -> Any:
    return command.context_class(
        command, info_name=name.rsplit(" ", 1)[-1], parent=parent, **command.context_settings
    )


def _summary(command: Any) -> str:
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")


def _lines(command: Any, context: Any, name: str, below: list[tuple[str, Any]]) -> Iterator[str]:
    yield from (f"# {name}", "", f"{_summary(command)}.", "")
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"{name} {pieces}", "```", "")
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n")[1:]:
        yield from _paragraph(paragraph)
    if below:
        yield from ("## Commands", "")
        for each, subcommand in below:
            file = f"{name} {each}".replace(" ", "-")
            yield from (f"[{name} {each}]({file}.md)", f": {_escape(_summary(subcommand))}.", "")
    for heading, records in parameters_by_heading(command, context).items():
        yield from (f"## {heading}", "")
        for names, meaning in records:
            yield from (f"`{names}`", f": {_escape(meaning or 'as above')}", "")
    if command.epilog:
        yield from (_escape(command.epilog), "")


def _paragraph(paragraph: str) -> Iterator[str]:
    """Yield a paragraph; one that begins by \\b keeps its lines: a heading, and examples."""
    if not paragraph.startswith("\b"):
        yield from (_escape(" ".join(paragraph.split())), "")
        return
    lines = paragraph.splitlines()[1:]
    indented = [line for line in lines if line.startswith(" ")]
    if not indented or lines[0].startswith(" "):
        yield from ("```text", *lines, "```", "")
        return
    yield from (f"## {lines[0].rstrip(':')}", "", "```sh")
    yield from (line.removeprefix("  ") for line in lines[1:])
    yield from ("```", "")


def _escape(text: str) -> str:
    """Return text of a help page so that Markdown shows each letter of it."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|" else letter for letter in text)


_LISTED = {
    "fields": ("Fields", "Every setting of a case: `--set NAME=VALUE`, or a line of an "
               "experiment's `[settings]` or `[matrix]`. From `joj list fields`."),
    "figures": ("Figures", "Every number measured for a case, and what it is counted from. From "
                "`joj list figures`."),
    "experiments": ("Experiments", "The questions that come with jojlab. From "
                    "`joj list experiments`."),
    "devices": ("Devices", "Modelled flash devices, and the disks that QEMU emulates. From "
                "`joj list devices`."),
    "kernels": ("Kernels", "Kernels that a guest can boot. From `joj list kernels`."),
}  # fmt: skip


def table_pages() -> tuple[Page, ...]:
    """Return the pages of what joj lists, and one with the columns of all tables."""
    return (*(_list_page(name, *words) for name, words in _LISTED.items()), _columns())


def _list_page(name: str, title: str, about: str) -> Page:
    rows = lists(name)
    columns = [column for column in rows[0] if column not in ("lowest", "highest")]
    text = [f"# {title}", "", about, "", *_table(columns, rows)]
    return Page(name, about, "\n".join(text))


def _columns() -> Page:
    about = "The tables of a capture, of a recording and of a collector's segment, as Parquet."
    text = ["# Tables and columns", "", about, ""]
    for path in sorted(SCHEMA.rglob("*.toml")):
        name = path.relative_to(SCHEMA).with_suffix("").as_posix()
        if name == "file_kinds":  # no table: which names of files are of which kind
            continue
        table = table_schema(name)
        text += [f"## {name}", ""]
        rows = [
            {
                "column": column.name,
                "type": column.type + (", may be null" if column.nullable else ""),
                "unit": column.unit,
                "meaning": column.meaning,
            }
            for column in table.columns
        ]
        text += [*_table(["column", "type", "unit", "meaning"], rows), ""]
    return Page("columns", about, "\n".join(text))


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(column, row[column]) for column in columns)} |"


def _cell(column: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if column in ("name", "column", "default"):
        return f"`{text}`"
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|" else letter for letter in text)
