"""Agents with another SQLite than the one that the agent comes with: of the amalgamation in a
folder of the user's, compiled with the options of that folder and linked into the agent of this
checkout. Each is made once, and kept in the cache by what it was made of.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from jojlab.foundation.cache import Cache, sha256, sha256_file
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import AGENT_CARGO, INSTALLED, agent_path
from jojlab.foundation.tools import need_tool, run_tool
from jojlab.model.field import Settings, Value

SOURCES = ("sqlite3.c", "sqlite3.h")
OPTIONS = "compile-options.txt"
# The oldest that was tried (tests/full/test_other_sqlite.py). What the agent calls that came later
# is in _LATER, which includes sqlite3.c.
OLDEST = (3, 7, 17)
_LATER = AGENT_CARGO.parent / "older_sqlite" / "later_functions.c"
_ANY_OTHER = "for any other SQLite: workload = program, with a program that is linked to it"
# Every sync of SQLite's goes through the agent, where the field sync_call chooses the call
# (agent/src/sqlite/sync_call.rs, .cargo/config.toml). An older one syncs a folder by fsync().
_COMPILE = ("-O2", "-w", "-fPIC", "-ffunction-sections", "-fdata-sections")
_OUR_OPTIONS = ("-Dfdatasync=joj_sync_call", "-Dfsync=joj_sync_call")
_OPTION = re.compile(r"(?:-D)?([A-Za-z_]\w*)(=[\w.+-]*)?|-U[A-Za-z_]\w*")
_OF_SYNC_CALL = ("fdatasync", "HAVE_FDATASYNC")
_VERSION = re.compile(r'^#define SQLITE_VERSION\s+"(\d+)\.(\d+)\.(\d+)', re.MULTILINE)
# Fields with values that not every SQLite heeds: those that every one does, and the name by which
# sqlite3.h has what the others need. Older ones make a passive checkpoint in place of `truncate`.
# What a PRAGMA reads back, the agent compares (agent/src/sqlite/pragmas.rs).
_LATER_VALUES: tuple[tuple[str, tuple[Value, ...], str], ...] = (
    ("checkpoint_mode", ("passive", "full", "restart"), "SQLITE_CHECKPOINT_TRUNCATE"),
    ("batch_atomic_write", ("off",), "SQLITE_IOCAP_BATCH_ATOMIC"),
    ("wal_prefill_bytes", (0,), "SQLITE_FCNTL_JOURNAL_POINTER"),
    ("checkpoint_when_closed", ("on",), "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"),
    ("vfs", ("none",), "SQLITE_IOCAP_BATCH_ATOMIC"),
)
_TARGET = "x86_64-unknown-linux-gnu"


def agent_with_sqlite(cache: Cache, folder: Path, tell: Callable[[], None] = lambda: None) -> Path:
    """Return the agent with the SQLite of a folder, made if need be: that takes a compiler, Rust
    and a checkout, some minutes the first time, and a minute or two for each other SQLite. `tell`
    is called before it is made.

    Raises UseError for a folder without an amalgamation that can be linked, and MachineError where
    the agent cannot be made here.
    """
    options = _options(folder)
    version = _version(folder)
    if version < OLDEST:
        raise UseError(
            f"{folder}: SQLite {_text(version)} is older than {_text(OLDEST)}, and lacks functions "
            "that the agent calls",
            _ANY_OTHER,
        )
    if INSTALLED:
        raise MachineError(
            f"{folder}: an agent with another SQLite is made in a checkout, and this jojlab was "
            "installed from a package",
            f"run joj from a checkout; {_ANY_OTHER}",
        )
    sources = [sha256_file(folder / name) for name in SOURCES]
    sources += [sha256_file(_LATER), sha256_file(agent_path())]
    parts = [*sources, *_COMPILE, *_OUR_OPTIONS, *options]
    key = sha256("\n".join(parts).encode())

    def build(entry: Path) -> None:
        tell()
        _build(cache, folder, [*_OUR_OPTIONS, *options], entry, key)

    return cache.entry("agents", key, build) / "joj-agent"


def refuse_older(folder: Path, settings: Settings) -> str:
    """Return why the SQLite of a folder cannot do what the fields of a case say; empty if it can.

    Raises UseError for a folder without an amalgamation.
    """
    version = _version(folder)
    header = (folder / SOURCES[1]).read_text(encoding="utf-8", errors="replace")
    for field, heeded, name in _LATER_VALUES:
        if settings[field] not in heeded and not re.search(rf"#define {name}\b", header):
            return (
                f"{field} = {settings[field]}: SQLite {_text(version)} of {folder} is older, and "
                f"has no {name}"
            )
    return ""


def _build(cache: Cache, folder: Path, options: list[str], entry: Path, key: str) -> None:
    gcc, ar, cargo = need_tool("gcc", "gcc"), need_tool("ar", "binutils"), need_tool("cargo", "")
    what = f"build an agent with the SQLite of {folder}; {_ANY_OTHER}"
    checkout = AGENT_CARGO.parent.parent
    target = checkout / "target" / "other-sqlite"
    # In a place of its own, by which cargo sees that it is another.
    place = target / "sqlite" / key[:16]
    with cache.lock("agents"):
        shutil.rmtree(place.parent, ignore_errors=True)
        place.mkdir(parents=True)
        for name in SOURCES:
            shutil.copyfile(folder / name, place / name)
        compile_it = [str(gcc), *_COMPILE, "-I.", "-c"]
        run_tool([*compile_it, *options, str(_LATER), "-o", "sqlite3.o"], what, place)
        run_tool([str(ar), "rcs", "libsqlite3.a", "sqlite3.o"], what, place)
        variables = {
            # libsqlite3-sys then links what the next three say in place of what it comes with; and
            # no library of this machine, which pkg-config knows.
            "LIBSQLITE3_SYS_USE_PKG_CONFIG": "1",
            "SQLITE3_LIB_DIR": str(place),
            "SQLITE3_INCLUDE_DIR": str(place),
            "SQLITE3_STATIC": "1",
            "PKG_CONFIG": "/bin/false",
            "CARGO_TARGET_DIR": str(target),
        }
        arguments = ["build", "--release", "--quiet", "--bin", "joj-agent"]
        words = [f"{name}={value}" for name, value in variables.items()]
        run_tool(["env", *words, str(cargo), *arguments], what, checkout)
        shutil.copy(target / _TARGET / "release" / "joj-agent", entry / "joj-agent")


def _version(folder: Path) -> tuple[int, ...]:
    for name in SOURCES:
        if not (folder / name).is_file():
            raise UseError(
                f"{folder}: there is no {name}",
                "name a folder with SQLite's amalgamation, sqlite3.c and sqlite3.h "
                "(sqlite.org/amalgamation.html)",
            )
    text = (folder / SOURCES[0]).read_text(encoding="utf-8", errors="replace")
    found = _VERSION.search(text)
    if found is None:
        raise UseError(
            f"{folder / SOURCES[0]}: it has no SQLITE_VERSION, so it is no amalgamation of SQLite",
            "sqlite.org/amalgamation.html says how one is made",
        )
    return tuple(int(part) for part in found.groups())


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _options(folder: Path) -> list[str]:
    """Return the options that the folder's file has, one a line; none without such a file."""
    path = folder / OPTIONS
    if not path.is_file():
        return []
    options = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        found = _OPTION.fullmatch(word)
        if found is None:
            raise UseError(
                f"{path}, line {number}: {word!r} is no option of SQLite's build",
                "write one a line, as SQLITE_DEFAULT_SYNCHRONOUS=1 or -USQLITE_ENABLE_FTS5",
            )
        if found[1] in _OF_SYNC_CALL:
            raise UseError(
                f"{path}, line {number}: {word}: the field sync_call says by which call it syncs",
                f"drop the line, and set sync_call; a build without {found[1]} calls fsync",
            )
        options.append(word if word.startswith("-") else f"-D{word}")
    return options
