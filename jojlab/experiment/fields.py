"""The fields of a case: what each means, which values it may have, and what it is by default.

This one table serves the experiment files, `--set`, the options of `joj bill`, and the errors.
A field's name is also its key in the agent's case record (agent/src/case/mod.rs).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from jojlab.errors import UseError

Value = str | int


@dataclass(frozen=True)
class Field:
    """One field. `choices` for words, `lowest`/`highest` for whole numbers, neither for text.

    `place` is the (table, key) under which an experiment file names it outside [matrix].
    `workloads` are those that have the field; empty: all.
    """

    name: str
    meaning: str
    default: Value | None
    choices: tuple[str, ...] = ()
    lowest: int | None = None
    highest: int | None = None
    place: tuple[str, str] = ("workload", "")
    workloads: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Table and key in an experiment file."""
        return (self.place[0], self.place[1] or self.name)

    @property
    def is_number(self) -> bool:
        """Whether its values are whole numbers."""
        return self.lowest is not None

    def applies(self, workload: Value) -> bool:
        """Whether a case of `workload` has this field."""
        return not self.workloads or workload in self.workloads

    def check(self, value: object, where: str) -> Value:
        """Return `value` if the field may have it.

        Raises UseError naming the place, the field, and the nearest known value.
        """
        if self.is_number:
            return self._check_number(value, where)
        if not isinstance(value, str):
            raise UseError(f"{where}: {self.name} must be text, not {value!r}", "put it in quotes")
        if self.choices and value not in self.choices:
            hint = nearest(value, self.choices)
            raise UseError(
                f"{where}: {self.name} cannot be {value!r}{hint}",
                f"one of: {', '.join(self.choices)}",
            )
        return value

    def _check_number(self, value: object, where: str) -> int:
        assert self.lowest is not None
        if not isinstance(value, int) or isinstance(value, bool):
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {value!r}",
                f"{self.lowest} or more",
            )
        if value < self.lowest or (self.highest is not None and value > self.highest):
            limits = f"{self.lowest} to {self.highest}" if self.highest else f">= {self.lowest}"
            raise UseError(f"{where}: {self.name} cannot be {value}", f"allowed: {limits}")
        return value

    def parse(self, text: str, where: str) -> Value:
        """Read a value from the command line."""
        if not self.is_number:
            return self.check(text, where)
        try:
            return self.check(int(text.replace("_", "")), where)
        except ValueError:
            raise UseError(
                f"{where}: {self.name} must be a whole number, not {text!r}", "digits only"
            ) from None


FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
JOURNAL_MODES = ("delete", "truncate", "persist", "memory", "wal", "off")
SQLITE = ("sqlite-insert", "sqlite-update", "sqlite-delete")
RECORDS = ("file-write", "file-read")
FILES = (*RECORDS, "file-metadata")
WORKLOADS = (*SQLITE, *FILES)
SYNC_MODES = (
    "none",
    "o_sync",
    "o_dsync",
    "fsync",
    "fdatasync",
    "o_direct",
    "o_direct_sync",
    "mmap",
    "mmap_async",
    "mmap_sync",
    "sync_file_range",
    "rwf_dsync",
)

FILE_FIELDS: tuple[Field, ...] = (
    Field(
        "access",
        "records in order and round again, at random, after the file's end (which file-read has "
        "not), or the first one again and again",
        "random",
        ("sequential", "random", "append", "rewrite"),
        workloads=RECORDS,
    ),
    Field(
        "record_bytes",
        "bytes of one write or read",
        4096,
        lowest=1,
        highest=16 << 20,
        workloads=RECORDS,
    ),
    Field(
        "file_bytes",
        "bytes of the file before the first operation, cut to whole records; for append the most "
        "it may grow to. The guest's memory holds the device, hence the limit",
        16 << 20,
        lowest=1,
        highest=256 << 20,
        workloads=RECORDS,
    ),
    Field(
        "sync_mode",
        "how a write reaches the device: by flags of open(2) (o_direct_sync: O_DIRECT|O_SYNC), a "
        "call after it, stores into mapped memory and msync(2), or RWF_DSYNC of pwritev2(2); none, "
        "o_direct, mmap, mmap_async and sync_file_range do not make it durable",
        "fsync",
        SYNC_MODES,
        workloads=("file-write",),
    ),
    Field(
        "sync_every",
        "operations for each call of sync_mode; 1 where it has none. What the last call did not "
        "reach is deferred",
        1,
        lowest=1,
        highest=1_000_000,
        workloads=("file-write",),
    ),
    Field(
        "read_mode",
        "through the page cache, empty at first, or past it",
        "buffered",
        ("buffered", "o_direct"),
        workloads=("file-read",),
    ),
    Field(
        "metadata_operation",
        "what is done to one name; the files are empty, and so are the kernel's caches before stat",
        "create",
        ("create", "unlink", "rename", "mkdir", "stat"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_file",
        "fsync of the file or directory that the operation was about",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_directory",
        "fsync of the directory that its name is in",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
)

FIELDS: tuple[Field, ...] = (
    Field(
        "device",
        "profile of the modelled flash device, a name in devices/ or a path",
        "emmc-galaxy-s3",
        place=("device", "profile"),
    ),
    Field("filesystem", "filesystem", "ext4", FILESYSTEMS, place=("filesystem", "kind")),
    Field(
        "mount_options",
        "as for mount -o; the ATC'13 study mounted noatime",
        "noatime",
        place=("filesystem", "mount_options"),
    ),
    Field(
        "workload",
        "what a transaction does; of file-..., one operation with its sync is one commit",
        "sqlite-insert",
        WORKLOADS,
        place=("workload", "kind"),
    ),
    Field("journal_mode", "PRAGMA journal_mode", "truncate", JOURNAL_MODES, workloads=SQLITE),
    Field(
        "synchronous",
        "PRAGMA synchronous",
        "full",
        ("off", "normal", "full", "extra"),
        workloads=SQLITE,
    ),
    Field(
        "sync_call",
        "system call behind SQLite's syncs; SQLite calls fsync unless built otherwise",
        "fsync",
        ("fsync", "fdatasync"),
        workloads=SQLITE,
    ),
    Field(
        "batch_atomic_write",
        "whether SQLite may commit by F2FS's atomic write instead of a rollback journal",
        "off",
        ("off", "on"),
        workloads=SQLITE,
    ),
    Field("transactions", "measured transactions", 200, lowest=1, highest=1_000_000),
    Field(
        "warmup_transactions", "transactions before the measured ones", 5, lowest=0, highest=100_000
    ),
    Field(
        "initial_rows",
        "rows of each table before the first transaction; by default as many as delete deletes, "
        "1000 for update, 0 for insert, or 1000 if there are selects",
        None,
        lowest=0,
        highest=10_000_000,
        workloads=SQLITE,
    ),
    Field(
        "value_bytes",
        "bytes of a row's value; ATC'13 inserted 100",
        100,
        lowest=0,
        highest=100_000,
        workloads=SQLITE,
    ),
    Field(
        "key_order",
        "order of the keys",
        "sequential",
        ("sequential", "random"),
        workloads=SQLITE,
    ),
    Field(
        "page_size_bytes",
        "PRAGMA page_size, a power of two",
        4096,
        lowest=512,
        highest=65536,
        workloads=SQLITE,
    ),
    Field(
        "wal_autocheckpoint_pages",
        "WAL pages that make a checkpoint due; 0: only at the end. SQLite's default is 1000",
        1000,
        lowest=0,
        highest=1_000_000,
        workloads=SQLITE,
    ),
    Field(
        "checkpoint_mode",
        "PRAGMA wal_checkpoint's argument; restart and truncate make the next commit begin the WAL "
        "anew",
        "passive",
        ("passive", "full", "restart", "truncate"),
        workloads=SQLITE,
    ),
    Field(
        "databases",
        "databases attached, each changed in every transaction; over several, delete, truncate and "
        "persist join them by a super-journal, and the others are not atomic across them",
        1,
        lowest=1,
        highest=10,
        workloads=SQLITE,
    ),
    Field(
        "tables",
        "tables of each database; changes and selects go round them",
        1,
        lowest=1,
        highest=100,
        workloads=SQLITE,
    ),
    Field(
        "statements",
        "rows that a transaction changes in each database, a statement each",
        1,
        lowest=1,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "selects",
        "rows that a transaction looks up in each database before it changes any; drawn from the "
        "initial rows",
        0,
        lowest=0,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "interval_us",
        "idle time between two transactions in us; throughput counts it",
        0,
        lowest=0,
        highest=60_000_000,
        workloads=SQLITE,
    ),
    Field(
        "locking_mode",
        "PRAGMA locking_mode; exclusive keeps the rollback journal between transactions, and the "
        "WAL's index in memory",
        "normal",
        ("normal", "exclusive"),
        workloads=SQLITE,
    ),
    Field(
        "secure_delete",
        "PRAGMA secure_delete: zeroes over deleted rows; fast only where that costs no I/O",
        "off",
        ("off", "on", "fast"),
        workloads=SQLITE,
    ),
    Field(
        "auto_vacuum",
        "PRAGMA auto_vacuum; incremental keeps the pages' map and frees nothing by itself",
        "none",
        ("none", "full", "incremental"),
        workloads=SQLITE,
    ),
    Field(
        "temp_store",
        "PRAGMA temp_store; a change of one row needs no temporary file, so it costs nothing here",
        "default",
        ("default", "file", "memory"),
        workloads=SQLITE,
    ),
    *FILE_FIELDS,
)
BY_NAME = {field.name: field for field in FIELDS}


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ' (did you mean ...?)' for the known word nearest to `word`, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def field_named(name: str, where: str) -> Field:
    """Return the field called `name`; UseError with the nearest known name otherwise."""
    if name not in BY_NAME:
        raise UseError(
            f"{where}: unknown field {name!r}{nearest(name, BY_NAME)}",
            f"the fields are: {', '.join(BY_NAME)}",
        )
    return BY_NAME[name]
