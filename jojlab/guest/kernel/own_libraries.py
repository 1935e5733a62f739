"""Programs of a later Debian than this machine's: has each started by the loader and the libraries
that it was linked to, unpacked beside it.
"""

from __future__ import annotations

import shlex
import stat
from pathlib import Path

from jojlab.foundation.errors import MachineError

_ELF = b"\x7fELF"
_LOADER = "ld-linux-x86-64.so.2"
_SUFFIX = ".program"


def run_by_own_libraries(programs: Path, libraries: Path) -> None:
    """Put a script in the place of every program beneath `programs`.

    `libraries` holds unpacked packages. The program keeps its name (ld.so(8), --argv0), as some
    start others by it.
    """
    loader = next(libraries.rglob(_LOADER), None)
    if loader is None:
        raise MachineError(f"the packages of a kernel's libraries have no {_LOADER}")
    folders = sorted({str(path.parent) for path in libraries.rglob("*.so*")})
    for program in sorted(programs.rglob("*")):
        if program.is_symlink() or not program.is_file() or not _is_program(program):
            continue
        moved = program.with_name(program.name + _SUFFIX)
        program.rename(moved)
        words = [str(loader), "--library-path", ":".join(folders), "--argv0"]
        script = f'#!/bin/sh\nexec {shlex.join(words)} "$0" {shlex.quote(str(moved))} "$@"\n'
        program.write_text(script)
        program.chmod(0o755)


def _is_program(path: Path) -> bool:
    if not path.stat().st_mode & stat.S_IXUSR or ".so" in path.name:
        return False
    with path.open("rb") as file:
        return file.read(4) == _ELF
