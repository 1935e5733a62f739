"""The options of the subcommands that cut the power of cases."""

from __future__ import annotations

from typing import Annotated

import typer

STATES = 1000

DurabilityOption = Annotated[
    bool,
    typer.Option(
        "--durability", help="Cut the power too, and show what survives (docs/power-cuts.md)."
    ),
]
StatesOption = Annotated[
    int,
    typer.Option(
        "--states",
        metavar="N",
        min=1,
        max=1_000_000,
        help="Distinct states after power cuts to judge, of each case, shared out over its seeds; "
        "some 0.2 s of a processor each.",
    ),
]
