"""A group of subcommands, each of which is loaded and built when it is asked for.

A start of joj asks for one. To load and build all of them takes longer than a cached answer.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

Function = Callable[..., None]


class GroupedCommand(TyperCommand):
    """A command whose `--help` shows its options under their headings (rich_help_panel)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options; those without a heading last, as Options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            heading = getattr(parameter, "rich_help_panel", None) or kind
            groups.setdefault(heading, []).append(record)
        last = groups.pop("Options", [])
        for heading, records in (*groups.items(), ("Options", last)):
            with formatter.section(heading):
                formatter.write_dl(records)


def lazy_group(
    subcommands: Mapping[str, str],
    guarded: Callable[[Function], Function],
    with_own_flags: Collection[str] = (),
) -> type[TyperGroup]:
    """Return the class of a group of these subcommands: "module:function" by name.

    Each function runs within `guarded`. Those `with_own_flags` read their flags themselves.
    """

    class LazyGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [*subcommands, *super().list_commands(ctx)]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in self.commands:
                # Of an unknown name typer suggests similar ones among all that are built.
                for name in {cmd_name} & subcommands.keys() or subcommands:
                    function = pkgutil.resolve_name(subcommands[name])
                    settings = {"ignore_unknown_options": name in with_own_flags}
                    self.commands[name] = _built(name, guarded(function), settings)
            return super().get_command(ctx, cmd_name)

    return LazyGroup


def _built(name: str, function: Function, settings: dict[str, bool]) -> Any:
    """Return the command of one function, as typer builds it."""
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=GroupedCommand, context_settings=settings)(function)
    return get_command(alone)
