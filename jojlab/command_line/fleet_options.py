"""The option of `joj fleet` that names the store."""

from __future__ import annotations

import typer

DATA = typer.Option(
    metavar="DIR|s3://...", help="Folder or bucket of the fleet's data.", envvar="JOJ_FLEET_DATA"
)
