"""Command-line options from the table of fields, for the subcommands that run one case."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from jojlab.experiment.fields import (
    ALL_SQLITE,
    DRAWN,
    FILES,
    PASSES,
    PROGRAMS,
    RECORDS,
    REPLAYS,
    SQL,
    SQLITE,
    Field,
    Value,
)

# The headings under which `--help` shows the fields, by the workloads that have them.
_HEADINGS = {
    (): "Fields of every workload",
    ALL_SQLITE: "Fields of every workload of SQLite",
    SQL: "Fields of sql, sql-recorded",
    SQLITE: "Fields of sqlite-insert, sqlite-update, sqlite-delete",
    DRAWN: "Fields of every workload but replays",
    FILES: "Fields of file-write, file-read, file-metadata",
    RECORDS: "Fields of file-write, file-read",
    (*RECORDS, *PASSES): "Fields of file-write, file-read, file-passes",
    PROGRAMS: "Fields of program",
    REPLAYS: "Fields of replay",
}


def option(field: Field) -> inspect.Parameter:
    """Return the option of one field."""
    meaning = field.meaning
    if field.choices:
        meaning += f": {', '.join(field.choices)}"
    default = f"default: {field.default}" if field.default not in (None, "") else ""
    if said := "; ".join(filter(None, (field.range, default))):
        meaning += f" [{said}]"
    flag = f"--{field.name.replace('_', '-')}"
    heading = _HEADINGS.get(field.workloads) or f"Fields of {', '.join(field.workloads)}"
    described = typer.Option(flag, help=meaning, show_default=False, rich_help_panel=heading)
    annotation: Any = (
        Annotated[int | None, described] if field.is_number else Annotated[str | None, described]
    )
    return keyword(field.name, annotation, None)


def keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter that is given by its name."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def parsed(fields: Iterable[Field], given: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Return the values of the options that were given; UseError for one that a field has not."""
    by_name = {field.name: field for field in fields}
    return {
        name: by_name[name].parse(str(value), where)
        for name, value in given.items()
        if value is not None
    }


def set_signature(
    command: Callable[..., None], doc: str, parameters: Sequence[inspect.Parameter]
) -> None:
    """Give a command of `**options` the help and the options that typer shows."""
    command.__doc__ = doc
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
