"""Options that several subcommands of `joj fleet` have: the store, and what asks it."""

from __future__ import annotations

import typer

DATA = typer.Option(
    metavar="DIR|s3://...", help="Folder or bucket of the fleet's data.", envvar="JOJ_FLEET_DATA"
)
ENGINE = typer.Option(help="What runs the questions.")
SPARK_REMOTE = typer.Option(
    metavar="sc://HOST:PORT", help="Spark Connect server of --engine spark.", envvar="SPARK_REMOTE"
)
