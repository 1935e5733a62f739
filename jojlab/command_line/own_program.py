"""The options of commands that take a user's program for an experiment, and that experiment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from os.path import isfile, join
from pathlib import Path
from typing import Any

import click

from jojlab.command_line import options as common
from jojlab.command_line.group import decorate, option
from jojlab.experiment.read import Experiment, apply, find, read
from jojlab.foundation.errors import UseError
from jojlab.foundation.printable import printable
from jojlab.model.fields import FIELDS
from jojlab.model.filesystems import BLOCK_FILESYSTEMS
from jojlab.model.workloads import workloads_that_need

_own = partial(option, heading="A program of your own")
_text = partial(_own, default="")
_OPTIONS = (
    _text(
        "--program",
        "PROGRAM",
        "Run this program on every filesystem, instead of an experiment: a path, or the name "
        "of an installed one. docs/own-program.md describes its surroundings.",
    ),
    _own("--argument", "TEXT", "One argument of the program; may be repeated.", multiple=True),
    _text("--files", "DIR", "Files to put into its working directory first."),
    _text("--other-programs", "'NAME NAME'", "Other programs that it starts, such as sh."),
    _text(
        "--check",
        "PROGRAM",
        "A program that judges what a power cut left of its files (docs/own-engine.md); "
        "default: sqlite, which judges its SQLite databases.",
    ),
    _text(
        "--acks",
        "descriptor|stdout",
        "Where the program writes a line for each promise that it makes: the descriptor "
        "JOJ_ACKS, or its standard output; default: descriptor.",
    ),
)


def own_program_options(function: Any) -> Any:
    """Give a command the options of a program of the user's."""
    return decorate(function, _OPTIONS)


def warn_of_files(arguments: Sequence[str], files: str) -> None:
    """Say on standard error which arguments name a file here that the guest does not have."""
    for argument in arguments:
        # Not by a Path, which refuses what is no name of a file, as a program's text.
        if isfile(argument) and not (files and isfile(join(files, argument))):
            name = printable(argument)
            text = f"{name} is a file here, and not in the guest: --files DIR puts a folder's there"
            click.echo(f"note: {text}", err=True)


def choose_experiment(
    where: str,
    experiment: str,
    settings: Sequence[str],
    *,
    program: str,
    argument: Sequence[str],
    **fields: str,
) -> Experiment:
    """Return the experiment that is named, or that of the program; what comes after `settings` are
    the values of own_program_options.

    Raises UseError, which names the command as `where`, when both or neither are given.
    """
    if program and experiment:
        raise UseError(f"{where}: EXPERIMENT and --program", "give one of them")
    if program:
        warn_of_files(argument, fields.get("files", ""))
        return program_experiment(where, program, argument, fields, settings)
    if argument or any(fields.values()):
        given = ["argument"] * bool(argument) + [name for name, text in fields.items() if text]
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UseError(f"{where}: {options}: of which program?", "give --program too")
    if not experiment:
        raise UseError(f"{where}: no experiment", "name one (joj list), or give --program")
    return read(find(experiment), settings)


def program_experiment(
    where: str,
    program: str,
    arguments: Sequence[str],
    fields: Mapping[str, str],
    settings: Sequence[str],
) -> Experiment:
    """Return the experiment of one program on every filesystem, or on those of `--set`."""
    [workload] = workloads_that_need("program")
    own = {"program": program, "arguments": shlex.join(arguments), "workload": workload}
    fixed = common.field_values(
        FIELDS, {**own, **{name: text for name, text in fields.items() if text}}, where
    )
    name = Path(program).name
    question = f"What does {printable(name)} commit, and what does that cost on each filesystem?"
    matrix = {"filesystem": tuple(BLOCK_FILESYSTEMS)}
    experiment = Experiment(f"program-{name}", question, (1,), fixed, matrix, where=where)
    return apply(experiment, settings).expand()
