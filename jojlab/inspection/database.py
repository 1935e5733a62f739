"""A database file of SQLite as it lies there: its header, and its WAL or rollback journal. And a
library of SQLite: its version, and what it was built to do that a commit pays for.

The layout is that of sqlite.org/fileformat2.html: the header (1.3), the rollback journal (3), and
the WAL (4.1). Nothing is opened by SQLite, which might recover the database.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from jojlab.foundation.elf import imported_symbols

HEADER_BYTES = 100
JOURNAL_SUFFIX, WAL_SUFFIX = "-journal", "-wal"
MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WAL_VERSION = 2
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LARGEST_PAGE_BYTES = 65536
_AUTO_VACUUM = ("none", "full", "incremental")


class JournalMode(StrEnum):
    """A journal mode as far as files show it: only WAL stands in the database itself."""

    WAL = "wal"
    TRUNCATE = "truncate"
    PERSIST = "persist"
    NO_JOURNAL_FILE = "delete, memory or off"
    IN_A_TRANSACTION = "delete, truncate or persist"


@dataclass(frozen=True)
class Database:
    """One database, as its files describe it.

    `wal_bytes` and `journal_bytes` are the sizes of its WAL and rollback journal, None where there
    is no such file. `pages` is the size that the header names, 0 in files of SQLite before 3.7.0.
    """

    path: Path
    file_bytes: int
    page_bytes: int
    pages: int
    journal_mode: JournalMode
    auto_vacuum: str
    application_id: int
    user_version: int
    writer_version: int
    wal_bytes: int | None
    journal_bytes: int | None
    is_hot: bool

    @property
    def wal_frames(self) -> int:
        """Return how many frames the WAL has room for; old ones may lie among them."""
        body = (self.wal_bytes or 0) - _WAL_HEADER_BYTES
        return max(body // (self.page_bytes + _FRAME_HEADER_BYTES), 0)


def read_database(path: Path) -> Database | None:
    """Return what a database's files say; None where the file is no database of SQLite that one can
    read, or is encrypted.

    Raises OSError when a file cannot be read.
    """
    path = Path(os.path.realpath(path))  # SQLite's journals lie beside what a link leads to
    with path.open("rb") as file:
        header, file_bytes = file.read(HEADER_BYTES), os.fstat(file.fileno()).st_size
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return None
    # 1 stands for 65536, which two bytes cannot hold.
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = _LARGEST_PAGE_BYTES if page_bytes == 1 else page_bytes
    if page_bytes < 512 or page_bytes & (page_bytes - 1):
        return None
    pages, = struct.unpack_from(">I", header, 28)  # fmt: skip
    largest_root, = struct.unpack_from(">I", header, 52)  # fmt: skip
    user_version, incremental, application_id = struct.unpack_from(">iIi", header, 60)
    writer_version, = struct.unpack_from(">I", header, 96)  # fmt: skip
    journal_bytes, is_hot = _journal(path.with_name(path.name + JOURNAL_SUFFIX))
    return Database(
        path=path,
        file_bytes=file_bytes,
        page_bytes=page_bytes,
        pages=pages,
        journal_mode=_journal_mode(header, journal_bytes, is_hot),
        auto_vacuum=_AUTO_VACUUM[0 if not largest_root else 2 if incremental else 1],
        application_id=application_id,
        user_version=user_version,
        writer_version=writer_version,
        wal_bytes=_size(path.with_name(path.name + WAL_SUFFIX)),
        journal_bytes=journal_bytes,
        is_hot=is_hot,
    )


def _journal_mode(header: bytes, journal_bytes: int | None, is_hot: bool) -> JournalMode:
    if header[18] == _WAL_VERSION:
        return JournalMode.WAL
    if journal_bytes is None:
        return JournalMode.NO_JOURNAL_FILE
    if is_hot:
        return JournalMode.IN_A_TRANSACTION
    # TRUNCATE leaves an empty file behind, PERSIST one whose header is zeros.
    return JournalMode.PERSIST if journal_bytes else JournalMode.TRUNCATE


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _journal(path: Path) -> tuple[int | None, bool]:
    """Return the size of a rollback journal, None where there is none, and whether it has the
    beginning of one that is in use.
    """
    try:
        with path.open("rb") as file:
            is_hot = file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
            return os.fstat(file.fileno()).st_size, is_hot
    except FileNotFoundError:
        return None, False


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
