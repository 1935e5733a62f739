"""joj doctor, cache, cure and inspect: what this machine lacks, what the cache holds, where the VFS
for SQLite is, and what lies under a database or a directory.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from jojlab.command_line import options as common
from jojlab.command_line.group import argument, command, flag, option
from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, MACHINE_CANNOT, MachineError, UseError
from jojlab.foundation.places import cure_folder
from jojlab.foundation.printable import json_text
from jojlab.inspection.sqlite_library import DEFAULT_LIBRARY
from jojlab.inspection.target import inspect_target
from jojlab.live.abilities import abilities, checks, packages
from jojlab.model.fields import BY_NAME
from jojlab.report.inspection import answer, print_inspection
from jojlab.report.shared.console import terminal


@command()
@flag("--build", "Also boot the guest once and keep its snapshot.")
@flag(
    "--install-line", "Only print the line that installs the missing packages; nothing if none is."
)
@common.json()
def doctor(build: bool, install_line: bool, as_json: bool) -> int:
    """Check this machine and print how to install what is missing.

    It checks packages, Rust, QEMU, agent, guest image (built if needed), cache, disk and memory,
    and ends with what joj can do here, and what helps where it cannot.

    \b
    Examples:
      joj doctor
      joj doctor --build
      sh -c "$(joj doctor --install-line)"
      joj doctor --json | jq '.checks[] | select(.ok | not)'

    Exit code 3 if something is missing.
    """
    if install_line:
        if build or as_json:
            raise UseError("--install-line prints one line alone", "leave --build and --json out")
        try:
            packages()
        except MachineError as error:
            print(error.remedy)
        return FINE
    device = read_profile(str(BY_NAME["device"].default))
    found = []
    for check in checks(device.icount_shift, build=build):
        found.append(check)
        if not as_json:
            print(f"{'ok     ' if check.ok else 'MISSING'} {check.name:<9} {check.detail}")
            if check.remedy:
                print(f"{'':17} remedy: {check.remedy}", flush=True)
    missing = ", ".join(check.name for check in found if not check.ok)
    fine = not missing
    able = list(abilities(missing))
    if as_json:
        rows = {"checks": [vars(check) for check in found], "abilities": [vars(a) for a in able]}
        print(json_text({"ok": fine, **rows}))
        return FINE if fine else MACHINE_CANNOT
    for ability in able:
        print(f"{'cannot ' if ability.reason else 'can    '} {ability.name:<9} {ability.commands}")
        if ability.reason:
            print(f"{'':17} {ability.reason}")
            print(f"{'':17} remedy: {ability.remedy}")
    return FINE if fine else MACHINE_CANNOT


@command()
@flag("--empty", "Remove all but what a running command uses.")
@common.json()
def cache(empty: bool, as_json: bool) -> None:
    """Show the size of the cache by kind, or empty it.

    Everything in it can be rebuilt. It is $JOJ_CACHE, or jojlab in $XDG_CACHE_HOME or ~/.cache.

    \b
    Examples:
      joj cache
      joj cache --empty
    """
    store = Cache.default()
    left = [str(path) for path in store.empty()] if empty else []
    sizes = store.sizes()
    if as_json:
        found = {"folder": str(store.root), "bytes": sizes}
        print(json_text({**found, "left_in_use": left} if empty else found))
        return
    print(store.root)
    for kind, size_bytes in sizes.items():
        print(f"  {kind:<10} {size_bytes / 1e6:10.1f} MB")
    print(f"  {'all':<10} {sum(sizes.values()) / 1e6:10.1f} MB")
    if left:
        print(f"{len(left)} kept: a running command uses them")


@command()
@flag("--path", "Only print the folder of the libraries.")
def cure(path: bool) -> None:
    """Say how an app gets cheap commits: joj_wal and joj_redo for SQLite.

    joj_wal keeps a WAL from growing, and changes no file format. joj_redo, for trial, commits over
    several databases by one flush; SQLite without it refuses a database whose process died. Neither
    changes the journal mode. docs/cure.md says what they change, and when not to use them.

    \b
    Examples:
      joj cure
      LD_PRELOAD=$(joj cure --path)/joj_wal_preload.so python3 app.py
      sqlite3 :memory: -cmd ".load $(joj cure --path)/joj_wal" ".open app.db"
    """
    folder = cure_folder()
    if path:
        print(folder)
        return
    print("For one database in WAL mode, joj_wal: a WAL that does not grow.")
    print("For several databases with rollback journals, joj_redo: one flush for all. For trial.")
    print(f"They are in {folder}:")
    print("  joj_wal.so, joj_redo.so                  for a SQLite that loads extensions")
    print("  joj_wal_preload.so, joj_redo_preload.so  LD_PRELOAD for a program as it is")
    print("  joj-redo-leave FILE...                   gives databases back to plain SQLite")


@command()
# What may not be read is refused with a remedy.
@argument(
    "path",
    type=click.Path(path_type=Path, readable=False),
    default=Path("."),
    metavar="[PATH]",
    help="A database or a folder.",
)
@option(
    "--library",
    "FILE",
    "SQLite of the app: a file, or a name for the loader. It is loaded: its code runs.",
    default=DEFAULT_LIBRARY,
)
@flag("--sync", "Time 64 syncs of a file that is made there.", name="try_sync")
@common.json()
def inspect(path: Path, library: str, try_sync: bool, as_json: bool) -> None:
    """Show what lies under a database or a folder, and what it means.

    It reads the file's header, /proc and /sys; it opens no database and needs no root. With --sync
    it makes a file in the folder, and removes it.

    \b
    Examples:
      joj inspect app.db
      joj inspect app.db --sync
      joj inspect app.db --library /opt/app/libsqlite3.so
      joj inspect /mnt/card --json

    Exit code 2 for what is no file or folder.
    """
    target = inspect_target(path, library, try_sync=try_sync, find_databases=True)
    if as_json:
        print(json_text({"in_short": answer(target), **asdict(target)}, default=str))
        return
    print_inspection(terminal(), target)
