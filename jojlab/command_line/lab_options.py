"""The options of the subcommands that run guests: how many at a time, where, and for how long."""

from __future__ import annotations

import os
from typing import Annotated

import typer

JOBS = os.cpu_count() or 1

ExperimentArgument = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="Folder, file, or a name in experiments/.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a field; KEY=A,B runs both."),
]
JobsOption = Annotated[
    int,
    typer.Option(metavar="N", min=1, max=256, help="Guests at a time; default: one per core."),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Run every case, even if it is cached.")
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=1, help="Limit on a case's real time, per GiB of its guest's memory."
    ),
]
ClusterOption = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Run on the workers of this Dask scheduler.")
]
