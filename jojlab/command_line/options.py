"""Options that several subcommands have, those of fields, and the folder for what is written."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
from click import Choice, FloatRange, IntRange

from jojlab.command_line.group import PATH, Decorator, argument, decorate, flag, option
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import EXPERIMENTS
from jojlab.lab.job import TIMEOUT_S, Options
from jojlab.model.field import Field, Value

STATES = 1000
CLOCKS = ("virtual", "wall")


def json(help: str = "Print JSON.") -> Decorator:
    """Return the option --json."""
    return flag("--json", help, name="as_json")


figures = flag("--figures", "Print all figures, not only those that answer most.")


def experiment_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the experiments whose names begin so, for a shell's completion."""
    names = sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml"))
    return [name for name in names if name.startswith(incomplete)]


experiment = argument(
    "experiment",
    required=False,
    default="",
    metavar="[EXPERIMENT]",
    help="Folder, file, or a name in experiments/.",
    shell_complete=experiment_names,
)
settings = option(
    "--set", "KEY=VALUE", "Set a field; KEY=A,B runs both.", name="settings", multiple=True
)
jobs = option(
    "--jobs", "N", "Guests at a time; default: one per core.", IntRange(1, 256), os.cpu_count() or 1
)
no_cache = flag("--no-cache", "Run every case, even if it is cached.")
timeout = option(
    "--timeout",
    "SECONDS",
    "Limit on a case's real time, but for what it waits for a processor, per GiB of its "
    "guest's memory.",
    FloatRange(1),
    TIMEOUT_S,
)
cluster = option("--cluster", "ADDRESS", "Run on the workers of this Dask scheduler.", default="")
durability = flag("--durability", "Cut the power too, and show what survives (docs/power-cuts.md).")
native = flag(
    "--native",
    "Judge states after power cuts in User Mode Linux of the guest's kernel, which is built "
    "once; of SQLite's own workloads (docs/power-cuts.md).",
)
states = option(
    "--states",
    "N",
    "Distinct states after power cuts to judge, of each case, shared out over its seeds; "
    "some 0.2 s of a processor each.",
    IntRange(1, 1_000_000),
    STATES,
)
memory_model = option(
    "--memory-model",
    "CORE",
    "Also run each case with a model of the caches and TLBs of cortex-a9 or arm11, and "
    "show what their misses would add; takes some three times as long.",
    default="",
)

_NAND = "Raw NAND of this machine"
clock = option(
    "--clock",
    "|".join(CLOCKS),
    "wall: run the cases on raw NAND of this machine, in real time. It needs root.",
    default="virtual",
    heading=_NAND,
)
nand = option("--nand", "DEVICE", "As /dev/mtd3.", PATH, heading=_NAND)
destroy = flag(
    "--destroy-data", "Everything on it may be lost; UBI's erase counters are kept.", heading=_NAND
)

fleet_data = option(
    "--data",
    "DIR|s3://...",
    "Folder or bucket of the fleet's data.",
    default="fleet",
    envvar="JOJ_FLEET_DATA",
    show_envvar=True,
)
engine = option(
    "--engine", "[duckdb|spark]", "What runs the questions.", Choice(["duckdb", "spark"]), "duckdb"
)
spark_remote = option(
    "--spark-remote",
    "sc://HOST:PORT",
    "Spark Connect server of --engine spark.",
    envvar="SPARK_REMOTE",
    show_envvar=True,
)


# The options of the lab by their names here, each with that of Options.
_OF_LAB = {"jobs": "jobs", "timeout": "timeout_s", "cluster": "cluster", "native": "native"}


def lab_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command those of its options that are the lab's as one, `options`."""

    @functools.wraps(function)
    def call(**values: Any) -> Any:
        lab = {field: values.pop(name) for name, field in _OF_LAB.items() if name in values}
        use_cache = not values.pop("no_cache", False)
        return function(options=Options(use_cache=use_cache, **lab), **values)

    return call


def field_options(fields: Iterable[Field]) -> Decorator:
    """Return a decorator that gives a command an option for each field."""
    options = [_field_option(field) for field in fields]
    return lambda function: decorate(function, options)


def _field_option(field: Field) -> Decorator:
    meaning = field.meaning
    if field.choices:
        meaning += f": {', '.join(field.choices)}"
    default = f"default: {field.default}" if field.default not in (None, "") else ""
    if limits := "; ".join(filter(None, (field.range, default))):
        meaning += f" [{limits}]"
    flags, word = f"--{field.name.replace('_', '-')}", "N" if field.is_number else "TEXT"
    type_ = int if field.is_number else str
    return option(flags, word, meaning, type_, name=field.name, heading=field.heading)


def field_values(
    fields: Iterable[Field], options: Mapping[str, Any], where: str
) -> dict[str, Value]:
    """Return the values of the fields whose options were given.

    Raises UseError, which names `where`, for a value that a field does not take.
    """
    by_name = {field.name: field for field in fields}
    return {
        name: by_name[name].parse(str(value), where)
        for name, value in options.items()
        if value is not None
    }


@contextmanager
def out_folder(out: Path | None, wanted: Path, *, removed_on_error: bool = False) -> Iterator[Path]:
    """Yield `out`, or else a folder that free_folder makes; it goes again if it stays empty, and
    the one that it is in, if that is new too. With `removed_on_error` it goes with what an
    exception left in it.
    """
    if out is not None:
        yield out
        return
    was_there = wanted.parent.exists()
    folder = free_folder(wanted)
    try:
        yield folder
    except BaseException:
        if removed_on_error:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        with suppress(OSError):
            folder.rmdir()  # it stays where it holds anything
            if not was_there:
                wanted.parent.rmdir()


def free_folder(wanted: Path) -> Path:
    """Make `wanted`, or the first of wanted-2, wanted-3 ... that is not there; return it.

    Raises MachineError when no folder can be made there.
    """
    for number in itertools.count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
        except OSError as error:
            raise MachineError(
                f"{folder}: cannot be made: {error.strerror}", "name a folder with --out"
            ) from error
    raise AssertionError("count() has no end")
