"""The vocabulary of what a power cut or a crash may destroy: harms, causes, and what is unknown.

jojlab/analysis/run/risks.py finds the hazards of a case. Causes that belong to one filesystem stand
in its file (jojlab/model/filesystems).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Harm(StrEnum):
    """A harm: what may be lost."""

    COMMITS = "lost-commits"  # of SQLite, that had returned
    WRITES = "lost-writes"  # to files, that had returned, or whose sync had
    NAMES = "lost-names"  # created, removed or renamed files
    TRANSACTION = "split-transaction"  # it may be in some of its databases only
    DATABASE = "corrupt-database"
    DATABASE_BY_CRASH = "corrupt-database-by-crash"  # no power cut is needed: the app's end will do
    FILESYSTEM = "corrupt-filesystem"
    STALE_DATA = "stale-data"  # a file may hold old bytes of the device
    STATED = "stated"  # what the experiment's author says of a variant


@dataclass(frozen=True, order=True)
class Cause:
    """A setting, or several together, that make a harm possible.

    `value` names it in `--json`. `sentence` describes it to a reader; {} stands for the value of
    the setting. `file_sentence` does so for workloads without commits and database, where that
    differs. `page` is the one of docs/ that has what power cuts showed of it.
    """

    value: str
    sentence: str = field(compare=False)
    file_sentence: str = field(default="", compare=False)
    page: str = field(default="docs/power-cuts.md", compare=False)


NO_JOURNAL = Cause(
    "no-journal",
    "journal_mode {}: a crash or a power cut during a commit can leave the database corrupt",
)
_LEVELS = "docs/what-is-lost.md"
SYNCHRONOUS_OFF = Cause(
    "synchronous-off",
    "synchronous OFF: a power cut can lose commits and corrupt the database",
    page=_LEVELS,
)
SYNCHRONOUS_NORMAL = Cause(
    "synchronous-normal",
    "synchronous NORMAL: a power cut at the wrong moment may corrupt the database",
    page=_LEVELS,
)
WAL_NORMAL = Cause(
    "wal-normal",
    "WAL with synchronous NORMAL: a power cut may lose the last commits, but nothing else",
    page=_LEVELS,
)
DELETE_FULL = Cause(
    "delete-full",
    "DELETE with synchronous FULL: a power cut just after a commit may undo it, because the "
    "removal of the journal is not synced; EXTRA syncs it",
    page=_LEVELS,
)
DROPPED_SYNC = Cause(
    "dropped-sync", "the syncs of the {} are left out: a power cut can undo what they protect"
)
SYNC_OF_SIZE = Cause(
    "sync-of-size",
    "fdatasync-of-size: where a file's size is as before, neither its inode nor the device's cache "
    "is made durable; a power cut can lose commits and corrupt the database",
)
SEVERAL_WALS = Cause(
    "several-wals",
    "WAL over several databases: a power cut may leave a transaction that changes several in only "
    "some of them",
    page="docs/findings/sqlite-wal-databases.md",
)
NO_SUPER_JOURNAL = Cause(
    "no-super-journal",
    "several databases without a super-journal: a power cut may leave a transaction that changes "
    "several in only some of them",
)
UNSET_ATTACHED = Cause(
    "unset-attached",
    "attached databases without the settings of the main one: a power cut may undo a commit in "
    "them, and leave a transaction in only some databases",
)
LAZY_SYNC_MODE = Cause(
    "lazy-sync-mode", "sync mode {}: a write that returned may still be in a cache"
)
SYNC_EVERY = Cause(
    "sync-every", "one sync for {} operations: a power cut may lose those since the last sync"
)
NO_DIRECTORY_SYNC = Cause(
    "no-directory-sync", "no sync of the directory: a power cut may undo the operation"
)
NO_BARRIER = Cause(
    "no-barrier",
    "mount option {}: the filesystem sends no flush; a power cut can lose commits and corrupt the "
    "database and the filesystem",
    "mount option {}: the filesystem sends no flush; a power cut can lose writes and names whose "
    "sync returned, and corrupt the filesystem",
)
# SQLite has them on F2FS alone (jojlab/model/filesystems/f2fs.py).
BATCH_COMMIT = Cause(
    "batch-commit",
    "F2FS's batch atomic writes: the ioctl that commits a batch returns before the file's node is "
    "written (Linux 6.1 waits), and SQLite's sync waits for it only if it is fsync on a device "
    "with a volatile cache; a power cut may undo the last commits",
    page="docs/findings/f2fs-batch-atomic-writes.md",
)
VARIANT = Cause("variant", "{}")
# Seen in the commits of a program or a replay; the value says in how many, and of which mode.
UNSYNCED_FRAMES = Cause(
    "unsynced-frames",
    "{} returned before the frames were synced, as with synchronous NORMAL: a power cut may lose "
    "the last commits",
)
UNSYNCED_END = Cause(
    "unsynced-end",
    "{} returned before the end of the journal was synced: a power cut just after such a commit "
    "may undo it",
)
EXPOSED_JOURNAL = Cause(
    "exposed-journal",
    "{} counted on the journal before it was synced, as with synchronous NORMAL or OFF: a "
    "power cut at the wrong moment may corrupt the database",
)
UNSYNCED_DATABASE = Cause(
    "unsynced-database",
    "{} ended before the database was synced, as with synchronous OFF: a power cut can lose "
    "commits and corrupt the database",
)
NO_JOURNAL_FILE = Cause(
    "no-journal-file",
    "{} had no journal file, as in journal_mode MEMORY or OFF: a crash or a power cut during a "
    "commit can leave the database corrupt",
)
SEEN_IN_COMMITS = frozenset(
    {UNSYNCED_FRAMES, UNSYNCED_END, EXPOSED_JOURNAL, UNSYNCED_DATABASE, NO_JOURNAL_FILE}
)


class Doubt(StrEnum):
    """A reason why it is not known what a power cut does."""

    NO_SETTINGS = "no-settings"  # no case was run: an import, or a trace of this machine
    NO_RULE = "no-rule"  # the workload is none of jojlab's
    NOT_SEEN = "commits-not-seen"  # of a program or a replay
    LOST_CALLS = "incomplete"  # some of its calls were not seen
    NO_SQLITE = "no-sqlite"
    NO_COMMIT = "no-commit"
    FILESYSTEM = "filesystem"  # one that jojlab does not know, or nobody said which


@dataclass(frozen=True, order=True)
class Unknown:
    """One thing that is not known; `value` names it, where the doubt does not."""

    doubt: Doubt
    value: str = ""


@dataclass(frozen=True)
class ModeCounts:
    """Counts of the commits of one journal mode that were seen, and of those that lacked a sync
    (docs/commits.md).

    `end_unsynced` returned before anything was synced after their last frame or the end of their
    journal; `several_databases` changed several at once, joined by no super-journal.
    """

    commits: int = 0
    end_unsynced: int = 0
    journal_exposed: int = 0
    database_unsynced: int = 0
    several_databases: int = 0


@dataclass(frozen=True)
class Observation:
    """The facts that are known of a case besides its fields.

    `databases` is how many a connection of its scripts has open, `journal_modes` are those that its
    scripts change to. Of a program or a replay, `modes`
    are its commits by journal mode, None where nobody looked; `found_databases` counts the
    databases that it had; `lost_calls` says that not all its calls were seen.
    """

    databases: int = 1
    journal_modes: tuple[str, ...] = ()
    modes: Mapping[str, ModeCounts] | None = None
    found_databases: int = 0
    lost_calls: bool = False


@dataclass(frozen=True, order=True)
class Hazard:
    """One thing that may be lost. `value` is the setting's value, where the cause names none.

    For the words of a variant's author (Harm.STATED) `value` has the text.
    """

    kind: Harm
    cause: Cause
    value: str = ""

    @property
    def harm(self) -> tuple[Harm, str]:
        """Return what is lost, whatever causes it: hazards of two cases are compared by it."""
        return self.kind, self.value if self.kind is Harm.STATED else ""


@dataclass(frozen=True)
class Stakes:
    """The losses that a case can have, as far as hazards of a filesystem depend on them.

    `last` is the harm of losing its last operations that returned. `is_concurrent`: several threads
    sync at a time; `is_lazy`: its writes stay in caches; `reads_only`: it changes nothing.
    """

    last: Harm
    has_database: bool
    is_concurrent: bool
    is_lazy: bool
    reads_only: bool

    def sync_hazards(self, cause: Cause, value: str = "") -> tuple[Hazard, ...]:
        """Return the hazards of a sync that does not do what it should."""
        hazard = Hazard(self.last, cause, value)
        return (hazard, Hazard(Harm.DATABASE, cause, value)) if self.has_database else (hazard,)
