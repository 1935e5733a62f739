"""joj doctor: what this machine can do, what is missing, and the line that installs it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from jojlab.errors import FINE, MACHINE_CANNOT


def doctor(
    build: Annotated[
        bool, typer.Option("--build", help="Build the guest image and its snapshot if need be.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at packages, agent, guest image, cache and disk; say what is missing and the remedy.

    \b
    Examples:
      joj doctor
      joj doctor --build
      joj doctor --json | jq '.checks[] | select(.ok | not)'

    Exit code 3 when something is missing.
    """
    from jojlab.guest.health import checks

    found = list(checks(build=build))
    fine = all(check.ok for check in found)
    if as_json:
        print(json.dumps({"ok": fine, "checks": [vars(check) for check in found]}, indent=1))
    else:
        for check in found:
            print(f"{'ok     ' if check.ok else 'MISSING'} {check.name:<16} {check.detail}")
            if check.remedy:
                print(f"{'':24} remedy: {check.remedy}")
    raise typer.Exit(FINE if fine else MACHINE_CANNOT)
