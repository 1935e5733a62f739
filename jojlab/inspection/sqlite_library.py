"""A library of SQLite: its version, and what it was built to do that a commit pays for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.elf import imported_symbols

DEFAULT_LIBRARY = "libsqlite3.so.0"
# Options of the build that decide what a commit costs and risks, and the value that each has by
# default (sqlite.org/compile.html); others are there or not.
_DEFAULTS = {
    "DEFAULT_SYNCHRONOUS": "2",
    "DEFAULT_WAL_SYNCHRONOUS": "2",
    "DEFAULT_WAL_AUTOCHECKPOINT": "1000",
    "DEFAULT_JOURNAL_SIZE_LIMIT": "-1",
    "DEFAULT_PAGE_SIZE": "4096",
    "DEFAULT_FOREIGN_KEYS": "0",
    "ENABLE_BATCH_ATOMIC_WRITE": None,
    "DISABLE_DIRSYNC": None,
    "NO_SYNC": None,
}


@dataclass(frozen=True)
class SqliteLibrary:
    """One library; `syncs_by` is fdatasync or fsync, None where its symbols do not tell.

    `options` are those of its build that bear on a commit and are not SQLite's defaults.
    """

    path: Path | None
    version: str
    syncs_by: str | None
    options: tuple[str, ...]


def read_library(name: str = DEFAULT_LIBRARY) -> SqliteLibrary | None:
    """Return what a library says of itself; None where the loader finds none of that name."""
    try:
        library = ctypes.CDLL(name)
        library.sqlite3_libversion.restype = ctypes.c_char_p
        library.sqlite3_compileoption_get.restype = ctypes.c_char_p
        version = library.sqlite3_libversion().decode()
    except (OSError, AttributeError):
        return None
    options: list[str] = []
    while (option := library.sqlite3_compileoption_get(len(options))) is not None:
        options.append(option.decode())
    path = _loaded_file(Path(name).name)
    # Without HAVE_FDATASYNC, os_unix.c makes fdatasync another name of fsync.
    symbols = imported_symbols(path) if path else frozenset()
    known = {"fsync", "fdatasync"} & symbols
    return SqliteLibrary(
        path,
        version,
        ("fdatasync" if "fdatasync" in known else "fsync") if known else None,
        tuple(each for each in options if _bears_on_a_commit(each)),
    )


def _bears_on_a_commit(option: str) -> bool:
    name, _, value = option.partition("=")
    return name in _DEFAULTS and value != _DEFAULTS[name]


def _loaded_file(name: str) -> Path | None:
    """Return the file that the loader took for a name."""
    stem = name.partition(".so")[0]
    for line in Path("/proc/self/maps").read_text().splitlines():
        file = line.split(maxsplit=5)[5:]
        if file and Path(file[0]).name.startswith(stem + ".so"):
            return Path(file[0])
    return None
