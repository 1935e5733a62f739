"""joj doctor: checks this machine; prints what is missing and the line that installs it."""

from __future__ import annotations

from typing import Annotated

import typer

from jojlab.foundation.errors import FINE, MACHINE_CANNOT, MachineError, UseError
from jojlab.foundation.printable import json_text


def doctor(
    build: Annotated[
        bool, typer.Option("--build", help="Also boot the guest once and keep its snapshot.")
    ] = False,
    install_line: Annotated[
        bool,
        typer.Option(
            "--install-line",
            help="Only print the line that installs the missing packages; nothing if none is.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check this machine and print how to install what is missing.

    It checks packages, Rust, QEMU, agent, guest image (built if needed), cache, disk and memory.

    \b
    Examples:
      joj doctor
      joj doctor --build
      sh -c "$(joj doctor --install-line)"
      joj doctor --json | jq '.checks[] | select(.ok | not)'

    Exit code 3 if something is missing.
    """
    from jojlab.device.profile import read_profile
    from jojlab.experiment.fields import BY_NAME
    from jojlab.guest.health import checks, packages

    if install_line:
        if build or as_json:
            raise UseError("--install-line prints one line alone", "leave --build and --json out")
        try:
            packages()
        except MachineError as error:
            print(error.remedy)
        raise typer.Exit(FINE)
    device = read_profile(str(BY_NAME["device"].default))
    found = []
    for check in checks(device.icount_shift, build=build):
        found.append(check)
        if not as_json:
            print(f"{'ok     ' if check.ok else 'MISSING'} {check.name:<9} {check.detail}")
            if check.remedy:
                print(f"{'':17} remedy: {check.remedy}", flush=True)
    fine = all(check.ok for check in found)
    if as_json:
        print(json_text({"ok": fine, "checks": [vars(check) for check in found]}))
    raise typer.Exit(FINE if fine else MACHINE_CANNOT)
