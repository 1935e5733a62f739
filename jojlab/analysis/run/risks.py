"""What may a power cut or a crash destroy, by the settings of a case?

Reads the fields of a case, and what was seen of its commits; gives its hazards: what SQLite's and
the filesystems' manuals say of each setting, and five defects that power cuts found
(docs/power-cuts.md). Of a program and of a replay, whose settings nobody knows, its commits say it
(docs/commits.md). Gives too what is not known: where nothing is at risk that is known, but too
little is, nothing is called safe. jojlab/verify/durability.py holds hazards against power cuts;
their prose is made in jojlab/report/hazards.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Harm(StrEnum):
    """What may be lost."""

    COMMITS = "lost-commits"  # of SQLite, that had returned
    WRITES = "lost-writes"  # to files, that had returned, or whose sync had
    NAMES = "lost-names"  # created, removed or renamed files
    TRANSACTION = "split-transaction"  # it may be in some of its databases only
    DATABASE = "corrupt-database"
    DATABASE_BY_CRASH = "corrupt-database-by-crash"  # no power cut is needed: the app's end will do
    FILESYSTEM = "corrupt-filesystem"
    STALE_DATA = "stale-data"  # a file may hold old bytes of the device
    STATED = "stated"  # what the experiment's author says of a variant


class Cause(StrEnum):
    """Which setting, or settings together, make it possible."""

    NO_JOURNAL = "no-journal"
    SYNCHRONOUS_OFF = "synchronous-off"
    SYNCHRONOUS_NORMAL = "synchronous-normal"
    WAL_NORMAL = "wal-normal"
    DELETE_FULL = "delete-full"
    DROPPED_SYNC = "dropped-sync"
    SYNC_OF_SIZE = "sync-of-size"
    SEVERAL_WALS = "several-wals"
    NO_SUPER_JOURNAL = "no-super-journal"
    UNSET_ATTACHED = "unset-attached"
    LAZY_SYNC_MODE = "lazy-sync-mode"
    SYNC_EVERY = "sync-every"
    NO_DIRECTORY_SYNC = "no-directory-sync"
    NO_BARRIER = "no-barrier"
    SHARED_FLUSH = "shared-flush"
    ROLL_FORWARD = "roll-forward"
    LOG_ACROSS_SEGMENTS = "log-across-segments"
    EXTERNAL_JOURNAL = "external-journal"
    BATCH_COMMIT = "batch-commit"
    DATA_WRITEBACK = "data-writeback"
    VARIANT = "variant"
    # Observation in the commits of a program or a replay; the value says in how many.
    UNSYNCED_FRAMES = "unsynced-frames"
    UNSYNCED_END = "unsynced-end"
    EXPOSED_JOURNAL = "exposed-journal"
    UNSYNCED_DATABASE = "unsynced-database"
    NO_JOURNAL_FILE = "no-journal-file"


class Doubt(StrEnum):
    """Why it is not known what a power cut does."""

    NO_SETTINGS = "no-settings"  # no case was run: an import, or a trace of this machine
    NO_RULE = "no-rule"  # of a workload that is none of those below
    NOT_SEEN = "commits-not-seen"  # of a program or a replay
    LOST_CALLS = "incomplete"  # some of its calls were not seen
    NO_SQLITE = "no-sqlite"
    NO_COMMIT = "no-commit"
    FILESYSTEM = "filesystem"  # none that the lab knows, or nobody said which


@dataclass(frozen=True, order=True)
class Unknown:
    """One thing that is not known; `value` names it, where the doubt does not."""

    doubt: Doubt
    value: str = ""


@dataclass(frozen=True)
class ModeCounts:
    """The commits of one journal mode that were seen, and how many lacked what (docs/commits.md).

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
    """What is known of a case beside its fields.

    `databases` is how many a connection of its scripts has open. Of a program or a replay, `modes`
    are its commits by journal mode, None where nobody looked; `found_databases` counts the
    databases that it had. `lost_calls`: not all that it did was seen.
    """

    databases: int = 1
    modes: Mapping[str, ModeCounts] | None = None
    found_databases: int = 0
    lost_calls: bool = False


@dataclass(frozen=True, order=True)
class Hazard:
    """One thing that may be lost. `value` is the setting's value, where the cause names none.

    Of a variant's own words (Harm.STATED) `value` has the text.
    """

    kind: Harm
    cause: Cause
    value: str = ""

    @property
    def harm(self) -> tuple[Harm, str]:
        """What is lost, whatever makes it possible: hazards of two cases are compared by it."""
        return self.kind, self.value if self.kind is Harm.STATED else ""


# File workloads whose writes stay in caches (the field sync_mode), by the manual pages of open,
# msync and sync_file_range.
_LAZY_SYNCS = ("none", "o_direct", "mmap", "mmap_async", "sync_file_range")
_NO_BARRIER = ("nobarrier", "barrier=0", "fsync_mode=nobarrier")
# Those whose calls nobody here chose.
_NOT_OURS = ("program", "replay")
# Of every other workload its fields say what a returned operation has been promised. A new one is
# none of these until its rule stands here; test_risks.py goes over all that there are.
_RULED = frozenset(
    {
        "sqlite-insert", "sqlite-update", "sqlite-delete", "sql", "sql-recorded",
        "file-write", "file-read", "file-metadata", "file-passes",
    }
)  # fmt: skip
# Filesystems whose promises of a sync are known here.
_FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs", "ubifs")
_NOTHING = Observation()


def hazards(
    case: Mapping[str, Any], stated: str = "", observation: Observation = _NOTHING
) -> tuple[Hazard, ...]:
    """Return what is at risk; empty where nothing is that is known: see unknowns().

    `stated` is what a variant's author says beside that.
    """
    found = [
        *_of_sqlite(case, observation),
        *_of_commits(observation),
        *_of_files(case),
        *_of_mount(case, observation),
    ]
    if case.get("filesystem") == "nilfs2" and _has_others(case):
        # nilfs_flush_device(), fs/nilfs2/the_nilfs.h of Linux 6.1: who finds ns_flushed_device set
        # does not wait for the flush of whoever set it.
        found.append(Hazard(_last(case, observation), Cause.SHARED_FLUSH))
    found += _of_log_across_segments(case)
    found += _of_external_journal(case, observation)
    found += _of_roll_forward(case, observation)
    found += _of_batches(case)
    if stated:
        found.append(Hazard(Harm.STATED, Cause.VARIANT, stated))
    return tuple(found)


def unknowns(case: Mapping[str, Any], observation: Observation = _NOTHING) -> tuple[Unknown, ...]:
    """Return what is not known of a case; where nothing is, and it has no hazards, the manuals say
    that a returned commit survives a power cut.
    """
    workload = str(case.get("workload") or "")
    if not workload and case.get("journal_mode") is None:
        return (Unknown(Doubt.NO_SETTINGS),)
    found: list[Unknown] = []
    if workload in _NOT_OURS:
        found += _of_sight(observation)
    elif workload and workload not in _RULED:
        found.append(Unknown(Doubt.NO_RULE, workload))
    filesystem = str(case.get("filesystem") or "")
    if filesystem not in _FILESYSTEMS:
        found.append(Unknown(Doubt.FILESYSTEM, filesystem))
    return tuple(found)


def _of_sight(observation: Observation) -> Iterator[Unknown]:
    """What is not known of a program or a replay, by what was seen of its commits."""
    if observation.modes is None:
        yield Unknown(Doubt.NOT_SEEN)
        return
    if observation.lost_calls:
        yield Unknown(Doubt.LOST_CALLS)
    if not observation.found_databases:
        yield Unknown(Doubt.NO_SQLITE)
    elif not observation.modes:
        yield Unknown(Doubt.NO_COMMIT)


def verifiable(case: Mapping[str, Any], hazards: Iterable[Hazard]) -> tuple[Hazard, ...]:
    """Return the hazards that power cuts of a case can show: of a replay what its syncs promised is
    judged, and no commit.
    """
    if case.get("workload") != "replay":
        return tuple(hazards)
    of_commits = (Harm.COMMITS, Harm.TRANSACTION, Harm.DATABASE, Harm.DATABASE_BY_CRASH)
    return tuple(each for each in hazards if each.kind not in of_commits)


def risks_more(hazards: Iterable[Hazard], than: Iterable[Hazard]) -> bool:
    """Whether some harm is possible by `hazards` that is not by `than`."""
    return not {each.harm for each in hazards} <= {each.harm for each in than}


def hazard_json(hazard: Hazard) -> dict[str, str]:
    """Return it as `--json` prints it."""
    return {"kind": hazard.kind.value, "cause": hazard.cause.value, "value": hazard.value}


def unknown_json(unknown: Unknown) -> dict[str, str]:
    """Return it as `--json` prints it."""
    return {"doubt": unknown.doubt.value, "value": unknown.value}


def _has_database(case: Mapping[str, Any], observation: Observation) -> bool:
    """Whether SQLite commits there, as far as is known: who drives it sets its journal mode."""
    commits = case.get("workload") == "program" and bool(observation.modes)
    return case.get("journal_mode") is not None or commits


def _last(case: Mapping[str, Any], observation: Observation) -> Harm:
    """What the last operations of a case are that can be lost. Without SQLite there are no commits;
    of a replay its syncs are judged.
    """
    if _has_database(case, observation):
        return Harm.COMMITS
    return Harm.NAMES if case.get("metadata_operation") is not None else Harm.WRITES


def _reads_alone(case: Mapping[str, Any]) -> bool:
    return case.get("workload") == "file-read" or case.get("metadata_operation") == "stat"


def _has_others(case: Mapping[str, Any]) -> bool:
    """Whether several threads sync at a time."""
    several = any(int(case.get(field) or 1) > 1 for field in ("threads", "connections"))
    return several or case.get("background", "none") != "none"


def _of_external_journal(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    """Of ext4: its fsync leaves the flush of the data's device to jbd2, whose commit may make none.

    "jbd2: add a missing data flush during file and fs synchronization", linux-ext4, 6 December
    2024; jbd2_trans_will_send_data_barrier() of Linux 6.1.
    """
    if case.get("filesystem") != "ext4" or case.get("journal_device", "none") == "none":
        return
    yield Hazard(_last(case, observation), Cause.EXTERNAL_JOURNAL)
    if _has_database(case, observation):
        yield Hazard(Harm.DATABASE, Cause.EXTERNAL_JOURNAL)


def _of_log_across_segments(case: Mapping[str, Any]) -> Iterator[Hazard]:
    """Of NILFS2: a mount may take a super root whose log is not whole.

    A log that does not fit into what is left of a segment goes on in the next one, and nothing
    makes its first part durable before its last (nilfs_write_logs(), fs/nilfs2/segbuf.c). Where the
    first part is missing, nilfs_search_super_root() (recovery.c) still looks into the next segment
    (its label `strayed`), and takes the super root there (found by power cuts on Linux 6.1,
    docs/power-cuts.md).
    """
    if case.get("filesystem") == "nilfs2" and not _reads_alone(case):
        yield Hazard(Harm.FILESYSTEM, Cause.LOG_ACROSS_SEGMENTS)


def _of_roll_forward(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    """Of F2FS: a second power cut, while a mount recovers from the first, can undo the first syncs
    since the last checkpoint and leave later ones, so that a database may lose its journal alone.

    recover_data() reads the synced nodes from where the last checkpoint says that the next node
    goes; the checkpoint that follows writes its own nodes to the same place, without their marks
    of fsync and before it is durable (fs/f2fs/recovery.c, f2fs_sync_node_pages() of node.c; found
    by power cuts on Linux 6.1, docs/power-cuts.md). With two logs every sync is a checkpoint, and
    nothing is read so (need_do_checkpoint(), fs/f2fs/file.c).
    """
    options = str(case.get("mount_options") or "").split(",")
    if case.get("filesystem") != "f2fs" or "active_logs=2" in options:
        return
    commits = _has_database(case, observation) and case.get("synchronous") != "off"
    # A sync of a directory makes a checkpoint too, so that names are safe from it.
    is_of_names = case.get("metadata_operation") is not None
    unsynced = case.get("synchronous") == "off" or case.get("sync_mode") in _LAZY_SYNCS
    if not (is_of_names or unsynced or _reads_alone(case)):
        yield Hazard(_last(case, observation), Cause.ROLL_FORWARD)
    if commits:
        yield Hazard(Harm.DATABASE, Cause.ROLL_FORWARD)


def _of_batches(case: Mapping[str, Any]) -> Iterator[Hazard]:
    """Of F2FS: the ioctl that commits a batch atomic write does not wait for the file's node, and
    the sync after it takes the node for synced (f2fs_do_sync_file(), fs/f2fs/file.c; found by power
    cuts on Linux 5.10, 6.12 and 7.3, docs/power-cuts.md). fsync's flush comes after the node, but a
    device without a volatile cache gets none. With two logs the ioctl makes a checkpoint, which is
    waited for.
    """
    options = str(case.get("mount_options") or "").split(",")
    journal = case.get("journal_mode") in ("delete", "truncate", "persist", "memory")
    batches = journal and case.get("batch_atomic_write") == "on" and case["synchronous"] != "off"
    if batches and "active_logs=2" not in options:
        yield Hazard(Harm.COMMITS, Cause.BATCH_COMMIT)


def _of_mount(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    options = str(case.get("mount_options") or "").split(",")
    for option in options:
        if option in _NO_BARRIER:
            last = _last(case, observation)
            database = [Harm.DATABASE] if _has_database(case, observation) else []
            for harm in (last, *database, Harm.FILESYSTEM):
                yield Hazard(harm, Cause.NO_BARRIER, option)
    if "data=writeback" in options:  # ext4(5)
        yield Hazard(Harm.STALE_DATA, Cause.DATA_WRITEBACK)


def _of_commits(observation: Observation) -> Iterator[Hazard]:
    """Hazards by what was seen of the commits of a program or a replay: the syncs that they lack
    say what synchronous is (sqlite.org/pragma.html), and what ends them the journal mode.
    """
    for mode, counts in sorted((observation.modes or {}).items()):
        of = f"{{}} of {counts.commits:,}"
        if mode == "none":
            for harm in (Harm.DATABASE_BY_CRASH, Harm.DATABASE):
                yield Hazard(harm, Cause.NO_JOURNAL_FILE, of.format(f"{counts.commits:,}"))
        if mode == "wal" and counts.end_unsynced:
            value = of.format(f"{counts.end_unsynced:,}")
            yield Hazard(Harm.COMMITS, Cause.UNSYNCED_FRAMES, value)
        if mode == "batch-atomic":
            yield Hazard(Harm.COMMITS, Cause.BATCH_COMMIT)
        if mode in ("delete", "truncate", "persist"):
            yield from _of_rollback_journal(counts, f"{of} commits in mode {mode.upper()}")
        if counts.several_databases:
            several = Cause.SEVERAL_WALS if mode == "wal" else Cause.NO_SUPER_JOURNAL
            yield Hazard(Harm.TRANSACTION, several)


def _of_rollback_journal(counts: ModeCounts, of: str) -> Iterator[Hazard]:
    for count, cause, harms in (
        (counts.end_unsynced, Cause.UNSYNCED_END, (Harm.COMMITS,)),
        (counts.journal_exposed, Cause.EXPOSED_JOURNAL, (Harm.DATABASE,)),
        (counts.database_unsynced, Cause.UNSYNCED_DATABASE, (Harm.COMMITS, Harm.DATABASE)),
    ):
        if count:
            yield from (Hazard(harm, cause, of.format(f"{count:,}")) for harm in harms)


def _of_sqlite(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    """Hazards by sqlite.org/pragma.html on journal_mode and synchronous."""
    journal, synchronous = case.get("journal_mode"), case.get("synchronous")
    if journal is None:
        return
    # With OFF, SQLite writes no batches: it does so in place of a journal in memory (bBatch in
    # sqlite3PagerCommitPhaseOne(), pager.c).
    batch = journal == "memory" and case.get("batch_atomic_write") == "on"
    if journal in ("off", "memory") and not batch:
        for harm in (Harm.DATABASE_BY_CRASH, Harm.DATABASE):
            yield Hazard(harm, Cause.NO_JOURNAL, str(journal))
    if synchronous == "off":
        yield Hazard(Harm.COMMITS, Cause.SYNCHRONOUS_OFF)
        yield Hazard(Harm.DATABASE, Cause.SYNCHRONOUS_OFF)
    elif synchronous == "normal" and journal == "wal":
        yield Hazard(Harm.COMMITS, Cause.WAL_NORMAL)
    elif synchronous == "normal":
        yield Hazard(Harm.DATABASE, Cause.SYNCHRONOUS_NORMAL)
    elif journal == "delete" and synchronous == "full":
        yield Hazard(Harm.COMMITS, Cause.DELETE_FULL)
    dropped = str(case.get("dropped_sync") or "none")
    if dropped != "none":
        yield Hazard(Harm.COMMITS, Cause.DROPPED_SYNC, dropped)
        yield Hazard(Harm.DATABASE, Cause.DROPPED_SYNC, dropped)
    if case.get("sync_call") == "fdatasync-of-size":
        yield Hazard(Harm.COMMITS, Cause.SYNC_OF_SIZE)
        yield Hazard(Harm.DATABASE, Cause.SYNC_OF_SIZE)
    if max(int(case.get("databases") or 1), observation.databases) > 1:
        # Without a super-journal each database commits by itself (sqlite.org/lang_attach.html;
        # vdbeCommit() in vdbeaux.c).
        if case.get("attached_settings") == "sqlite":
            # They are in DELETE mode, which a main database in another may not share a
            # super-journal with.
            yield Hazard(Harm.COMMITS, Cause.UNSET_ATTACHED)
            yield Hazard(Harm.TRANSACTION, Cause.UNSET_ATTACHED)
        elif journal == "wal":
            yield Hazard(Harm.TRANSACTION, Cause.SEVERAL_WALS)
        elif journal in ("off", "memory") or synchronous == "off":
            yield Hazard(Harm.TRANSACTION, Cause.NO_SUPER_JOURNAL)


def _of_files(case: Mapping[str, Any]) -> Iterator[Hazard]:
    if case.get("sync_mode") in _LAZY_SYNCS:
        yield Hazard(Harm.WRITES, Cause.LAZY_SYNC_MODE, str(case["sync_mode"]))
    elif int(case.get("sync_every") or 1) > 1:
        yield Hazard(Harm.WRITES, Cause.SYNC_EVERY, str(case["sync_every"]))
    # fsync(2): that a file is synced does not mean that its name is; the directory must be.
    elif case.get("metadata_operation") not in (None, "stat") and case["sync_directory"] != "on":
        yield Hazard(Harm.NAMES, Cause.NO_DIRECTORY_SYNC)
