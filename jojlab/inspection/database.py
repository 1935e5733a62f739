"""Databases of SQLite as they lie there: their headers, and their WALs or rollback journals. Those
in a folder, as that of an app or a phone, are found by their headers, whatever their names.

The layout is that of sqlite.org/fileformat2.html: the header (1.3), the rollback journal (3), and
the WAL (4.1). Nothing is opened by SQLite, which might recover the database. A bound says how deep
and how far a folder is looked through, and what was not looked at is counted. Links are not
followed, and no other filesystem is entered.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path

HEADER_BYTES = 100
JOURNAL_SUFFIX, WAL_SUFFIX = "-journal", "-wal"
MAGIC = b"SQLite format 3\0"
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WAL_VERSION = 2
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_LARGEST_PAGE_BYTES = 65536
MOST_DEPTH, MOST_NAMES, MOST_DATABASES = 16, 100_000, 1_000
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


@dataclass
class FolderContents:
    """The databases below a folder, by path, and counts of what was and what was not looked at.

    `files` are regular files whose beginning was read. `unread` files and folders could not be;
    `links` were not followed; `other_filesystems` and `deeper` are folders that were not entered.
    `headless` are files with a journal or a WAL beside them and no header of SQLite, as encrypted
    databases are. `is_cut`: there are more names than MOST_NAMES, or databases than MOST_DATABASES.
    """

    path: Path
    databases: list[Database] = field(default_factory=list)
    files: int = 0
    unread: int = 0
    links: int = 0
    other_filesystems: int = 0
    deeper: int = 0
    headless: int = 0
    is_cut: bool = False

    def modes(self) -> dict[JournalMode, int]:
        """Return how many databases have each journal mode, the most frequent first."""
        return dict(Counter(each.journal_mode for each in self.databases).most_common())

    def page_sizes(self) -> dict[int, int]:
        """Return how many databases have each length of pages in bytes, the shortest first."""
        return dict(sorted(Counter(each.page_bytes for each in self.databases).items()))


def read_folder(path: Path) -> FolderContents:
    """Return the databases of a folder and of those below it.

    Raises OSError where the folder itself cannot be listed.
    """
    contents = FolderContents(Path(os.path.realpath(path)))
    device = contents.path.stat().st_dev
    names = 0
    level = [contents.path]
    for _ in range(MOST_DEPTH):
        deeper: list[Path] = []
        for entry, siblings in _entries(level, contents):
            names += 1
            if names > MOST_NAMES or len(contents.databases) >= MOST_DATABASES:
                contents.is_cut = True
                break
            try:
                if entry.is_symlink():
                    contents.links += 1
                elif entry.is_file(follow_symlinks=False):
                    _read_file(contents, Path(entry.path), siblings)
                elif not entry.is_dir(follow_symlinks=False):
                    continue
                elif entry.stat(follow_symlinks=False).st_dev == device:
                    deeper.append(Path(entry.path))
                else:
                    contents.other_filesystems += 1
            except FileNotFoundError:
                continue  # deleted since its folder was listed
            except OSError:
                contents.unread += 1
        level = [] if contents.is_cut else deeper
    contents.deeper = len(level)
    contents.databases.sort(key=lambda each: each.path)
    return contents


def _entries(
    folders: list[Path], contents: FolderContents
) -> Iterator[tuple[os.DirEntry[str], frozenset[str]]]:
    """Yield what is in some folders, each with the names of all that is in its own."""
    for folder in folders:
        try:
            with os.scandir(folder) as listing:
                some = islice(listing, MOST_NAMES + 1)
                entries = sorted(some, key=lambda entry: entry.name)
        except OSError:
            if folder == contents.path:
                raise
            contents.unread += 1
            continue
        siblings = frozenset(entry.name for entry in entries)
        for entry in entries:
            yield entry, siblings


def _read_file(contents: FolderContents, path: Path, siblings: frozenset[str]) -> None:
    # Something else may have come to its place: no link is followed, and no pipe waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        is_named_so = os.read(descriptor, len(MAGIC)) == MAGIC
    finally:
        os.close(descriptor)
    database = read_database(path) if is_named_so else None
    contents.files += 1
    if database:
        contents.databases.append(database)
    elif not siblings.isdisjoint((path.name + JOURNAL_SUFFIX, path.name + WAL_SUFFIX)):
        contents.headless += 1
