"""The databases of SQLite in a folder, as that of an app or a phone: found by the header of a file,
whatever its name. How deep and how far it is looked has a bound, and what was not looked at is
counted. Links are not followed, and no other filesystem is entered.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from jojlab.inspection.database import (
    JOURNAL_SUFFIX,
    MAGIC,
    WAL_SUFFIX,
    Database,
    JournalMode,
    read_database,
)

MOST_DEPTH, MOST_NAMES, MOST_DATABASES = 16, 100_000, 1_000


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
