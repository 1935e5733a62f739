"""Pages of Markdown on what can be asked and what is measured: fields, figures, columns of tables,
experiments, devices and kernels.

Reads the same declarations as `joj list`, and schema/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jojlab.commands.list_ import lists
from jojlab.foundation.places import SCHEMA
from jojlab.manual.command_pages import Page
from jojlab.trace.schema import table_schema

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
    return (*(_listed(name, *words) for name, words in _LISTED.items()), _columns())


def _listed(name: str, title: str, about: str) -> Page:
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
