"""Click's commands as joj shows them: options under headings, and groups that load a subcommand
when it is asked for.

A start of joj needs one subcommand; to load all of them takes longer than a cached answer.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

Decorator = Callable[[Any], Any]
PATH = click.Path(path_type=Path)


class Option(click.Option):
    """An option; `heading` is the one that `--help` shows it under."""

    def __init__(self, *args: Any, heading: str = "Options", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.heading = heading

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands in brackets after the help; an empty default is not shown."""
        extra = super().get_help_extra(ctx)
        if extra.get("default") == '""':
            del extra["default"]
        return extra


class Command(click.Command):
    """A command whose `--help` shows its options under their headings."""

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: format_options writes the arguments too."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments and options by heading."""
        for heading, records in parameters_by_heading(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)


class Subcommand(NamedTuple):
    """A subcommand of a group: where its click command stands, and its help in one line."""

    place: str
    help: str


def subcommands(rows: Mapping[str, str | Group]) -> dict[str, Subcommand | Group]:
    """Return the subcommands of a table by name: of "FILE:FUNCTION", which is a function of a file
    of jojlab/commands, the name is the function's; a group has its own.
    """
    found: dict[str, Subcommand | Group] = {}
    for place, row in rows.items():
        name = place.rpartition(":")[2].strip("_")
        found[name] = row if isinstance(row, Group) else Subcommand(f"jojlab.commands.{place}", row)
    return found


class Group(click.Group):
    """A group of subcommands by name, each loaded when it is asked for."""

    def __init__(
        self, name: str, help: str, rows: Mapping[str, str | Group], **settings: Any
    ) -> None:
        super().__init__(name, help=help, no_args_is_help=True, **settings)
        self.subcommands = subcommands(rows)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `--help`."""
        return [*self.subcommands, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand, loaded; None for an unknown name."""
        row = self.subcommands.get(cmd_name)
        if isinstance(row, Subcommand):
            command: click.Command = pkgutil.resolve_name(row.place)
            return command
        return row or super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands, of which none is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(list(short_helps(self.subcommands).items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the subcommands and options that begin so; no subcommand is loaded."""
        return [
            *(
                CompletionItem(name, help=text)
                for name, text in short_helps(self.subcommands).items()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def decorate(function: Any, decorators: Iterable[Decorator]) -> Any:
    """Return a function with the arguments and options of `decorators`, in their order."""
    for decorator in reversed([*decorators]):
        function = decorator(function)
    return function


command = partial(click.command, cls=Command)
argument = click.argument


def option(
    flags: str, metavar: str, help: str, type: Any = None, default: Any = None, **settings: Any
) -> Decorator:
    """Return an option: its flags, the word for its value and its meaning as `--help` shows them,
    its type (text if there is none) and default.

    `name`, among the settings, is the parameter that gets the value, where the flags do not name
    it; the others are click's.
    """
    settings |= {"type": type} if type is not None else {}
    settings |= {"default": default} if default is not None else {}
    return _option(flags, metavar=metavar, help=help, **settings)


def flag(flags: str, help: str, **settings: Any) -> Decorator:
    """Return an option without a value; the settings are those of `option`."""
    return _option(flags, help=help, is_flag=True, **settings)


def _option(flags: str, name: str = "", **settings: Any) -> Decorator:
    return click.option(*flags.split(", "), *filter(None, [name]), cls=Option, **settings)


def parameters_by_heading(
    described: click.Command, ctx: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """Return names and meanings of a command's arguments and options; `Options` are the last."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in described.get_params(ctx):
        is_argument = isinstance(parameter, click.Argument)
        heading = "Arguments" if is_argument else getattr(parameter, "heading", "Options")
        if (record := parameter.get_help_record(ctx)) is not None:
            groups.setdefault(heading, []).append(record)
    last = groups.pop("Options", [])
    return {**groups, **({"Options": last} if last else {})}


def short_helps(rows: Mapping[str, Subcommand | Group]) -> dict[str, str]:
    """Return the help of each subcommand in one line, without loading any."""
    return {
        name: row.help if isinstance(row, Subcommand) else (row.help or "").partition("\n")[0]
        for name, row in rows.items()
    }
