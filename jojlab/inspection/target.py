"""The layers under a path: database, mount, device and SQLite; and a case of the lab like it."""

from __future__ import annotations

import os
import stat
import statistics
import tempfile
import time
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.errors import UseError, unreadable
from jojlab.foundation.printable import printable
from jojlab.inspection.database import (
    Database,
    FolderContents,
    JournalMode,
    read_database,
    read_folder,
)
from jojlab.inspection.sqlite_library import DEFAULT_LIBRARY, SqliteLibrary, read_library
from jojlab.inspection.storage import BlockDevice, Mount, device_under, mount_under
from jojlab.model.field import Value
from jojlab.model.filesystems import FILESYSTEMS

_SYNCS, _SYNC_BYTES = 64, 4096
# Options that every mount has, or that cost nothing.
_USUAL_OPTIONS = frozenset({"rw", "ro", "relatime"})
# What mkfs chooses on the disks of the lab.
_LAB_BLOCK_BYTES = 4096
# The value of the field journal_mode by what files show.
VALUE_OF_MODE = {
    JournalMode.WAL: "wal",
    JournalMode.TRUNCATE: "truncate",
    JournalMode.PERSIST: "persist",
    # SQLite's default, where no journal file shows another.
    JournalMode.NO_JOURNAL_FILE: "delete",
    JournalMode.IN_A_TRANSACTION: "delete",
}
# What is said of a mode that its files do not show; MEMORY and OFF leave none.
_ASSUMED_MODES = {
    JournalMode.NO_JOURNAL_FILE: "no journal lies beside it: DELETE, SQLite's default, is assumed; "
    "MEMORY and OFF leave the same files",
    JournalMode.IN_A_TRANSACTION: "the journal of a transaction lies beside it: DELETE, SQLite's "
    "default, is assumed; TRUNCATE and PERSIST have one like it",
}


@dataclass(frozen=True)
class Target:
    """The place that a path leads to; `device` is None where its filesystem is on none.

    `folder` has the databases of a folder; None of a file, and where they were not looked for.
    `block_bytes` is the unit in which the filesystem gives room to files. `sync_ns` is the median
    time of a sync that was tried there, None where none was.
    """

    path: Path
    database: Database | None
    mount: Mount
    device: BlockDevice | None
    library: SqliteLibrary | None
    sync_ns: int | None = None
    folder: FolderContents | None = None
    block_bytes: int = 0


def inspect_target(
    path: Path,
    library: str = DEFAULT_LIBRARY,
    *,
    try_sync: bool = False,
    find_databases: bool = False,
) -> Target:
    """Return what lies under a file or a directory; with `find_databases` what is in that too.

    Raises UseError for what is neither, for what cannot be read, and for a library that was chosen
    and is none.
    """
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise UseError(f"{path}: there is no such file or directory", "check the path") from None
    except OSError as error:
        raise unreadable(path, error, "check the path") from None
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise UseError(f"{path} is neither a file nor a directory", "name a database or a folder")
    found = read_library(library)
    if found is None and library != DEFAULT_LIBRARY:
        raise UseError(
            f"--library {library}: the loader takes it for no library of SQLite",
            "name a libsqlite3.so; a program is none",
        )
    mount = mount_under(path)
    folder = path if stat.S_ISDIR(kind) else path.parent
    try:
        database = read_database(path) if stat.S_ISREG(kind) else None
        contents = read_folder(path) if find_databases and stat.S_ISDIR(kind) else None
    except OSError as error:
        remedy = "be a user who may read it, or name another file"
        raise unreadable(path, error, remedy) from None
    return Target(
        path,
        database,
        mount,
        device_under(mount),
        found,
        median_sync_ns(folder) if try_sync else None,
        contents,
        os.statvfs(path).f_frsize,
    )


def median_sync_ns(folder: Path) -> int:
    """Return what an overwrite of 4 KiB with its fdatasync takes in a folder: the median of 64, in
    a file that is removed.

    Raises OSError where the folder takes no file.
    """
    with tempfile.NamedTemporaryFile(prefix=".joj-inspect-", dir=folder) as file:
        descriptor = file.fileno()
        times = []
        for number in range(_SYNCS + 1):
            begin = time.monotonic_ns()
            os.pwrite(descriptor, bytes([number]) * _SYNC_BYTES, 0)
            os.fdatasync(descriptor)
            times.append(time.monotonic_ns() - begin)
    # The first one allocates the block.
    return round(statistics.median(times[1:]))


def case_like(
    target: Target, fields_by_option: Container[str] = ()
) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return the fields of a case like a target, but for those that an option gives, and notes of
    what was taken and what was not.
    """
    fields: dict[str, Value] = {}
    notes = []
    filesystem = FILESYSTEMS.get(target.mount.filesystem)
    if filesystem:
        fields["filesystem"] = filesystem.name
        if options := [each for each in target.mount.options if _is_taken(filesystem.name, each)]:
            fields["mount_options"] = ",".join(options)
        if mkfs_options := filesystem.mkfs_options_of(target.mount.driver_options):
            fields["mkfs_options"] = mkfs_options
    else:
        notes.append(f"the lab has no {target.mount.filesystem}: give --filesystem yourself")
    if target.database:
        fields["journal_mode"] = VALUE_OF_MODE[target.database.journal_mode]
        fields["page_size_bytes"] = target.database.page_bytes
        if target.database.auto_vacuum != "none":
            fields["auto_vacuum"] = target.database.auto_vacuum
        note = _ASSUMED_MODES.get(target.database.journal_mode)
        if note and "journal_mode" not in fields_by_option:
            notes.append(note)
    elif not target.path.is_dir():
        notes.append("it has no header of SQLite: journal mode and page size are the defaults")
    fields = {name: value for name, value in fields.items() if name not in fields_by_option}
    taken = ", ".join(f"{name}={value}" for name, value in fields.items())
    notes.insert(0, f"as {target.path}: {taken or 'nothing'}")
    if filesystem and target.block_bytes not in (0, _LAB_BLOCK_BYTES):
        notes.append(
            f"its blocks of {target.block_bytes} bytes are left out: a case has "
            f"{_LAB_BLOCK_BYTES} where mkfs_options say no other"
        )
    if target.mount.is_upper:
        notes.append("an overlay is above it, which a case does not have")
    left = [
        each
        for each in target.mount.options
        if filesystem and each not in _USUAL_OPTIONS and not _is_taken(filesystem.name, each)
    ]
    if left:
        notes.append(
            f"mount options that a case cannot have are left out: {printable(','.join(left))}"
        )
    if unknown := [
        words for name, words in _UNKNOWN_FIELDS.items() if name not in fields_by_option
    ]:
        listed = " and ".join(filter(None, (", ".join(unknown[:-1]), unknown[-1])))
        which = "them, or defaults hold" if len(unknown) > 1 else "it, or the default holds"
        notes.append(f"no file tells {listed}: give {which}")
    return fields, tuple(notes)


# What lies in no file, by the field of a case.
_UNKNOWN_FIELDS = {
    "synchronous": "synchronous", "sync_call": "the sync call", "device": "the device",
}  # fmt: skip


def _is_taken(filesystem: str, option: str) -> bool:
    settings: Mapping[str, Value] = {"mount_options": option, "mkfs_options": ""}
    return option not in _USUAL_OPTIONS and not FILESYSTEMS[filesystem].refusal(settings)
