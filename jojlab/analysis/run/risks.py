"""What may a power cut or a crash destroy, by the settings of a case?

Reads the fields of a case; gives its hazards: what SQLite's and the filesystems' manuals say of
each setting, and five defects that power cuts found (docs/power-cuts.md).
jojlab/verify/durability.py holds them against power cuts; their prose is made in
jojlab/report/words/hazards.py.
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


def hazards(case: Mapping[str, Any], stated: str = "") -> tuple[Hazard, ...]:
    """Return what is at risk; empty where a returned commit survives a power cut.

    `stated` is what a variant's author says beside that.
    """
    found = [*_of_sqlite(case), *_of_files(case), *_of_mount(case)]
    if case.get("filesystem") == "nilfs2" and _has_others(case):
        # nilfs_flush_device(), fs/nilfs2/the_nilfs.h of Linux 6.1: who finds ns_flushed_device set
        # does not wait for the flush of whoever set it.
        found.append(Hazard(_last(case), Cause.SHARED_FLUSH))
    found += _of_log_across_segments(case)
    found += _of_external_journal(case)
    found += _of_roll_forward(case)
    found += _of_batches(case)
    if stated:
        found.append(Hazard(Harm.STATED, Cause.VARIANT, stated))
    return tuple(found)


def risks_more(hazards: Iterable[Hazard], than: Iterable[Hazard]) -> bool:
    """Whether some harm is possible by `hazards` that is not by `than`."""
    return not {each.harm for each in hazards} <= {each.harm for each in than}


def hazard_json(hazard: Hazard) -> dict[str, str]:
    """Return it as `--json` prints it."""
    return {"kind": hazard.kind.value, "cause": hazard.cause.value, "value": hazard.value}


def _last(case: Mapping[str, Any]) -> Harm:
    """What the last operations of a case are that can be lost: file workloads and replays have no
    commits.
    """
    if case.get("metadata_operation") is not None:
        return Harm.NAMES
    return Harm.WRITES if case.get("workload") in ("file-write", "replay") else Harm.COMMITS


def _has_others(case: Mapping[str, Any]) -> bool:
    """Whether several threads sync at a time."""
    several = any(int(case.get(field) or 1) > 1 for field in ("threads", "connections"))
    return several or case.get("background", "none") != "none"


def _of_external_journal(case: Mapping[str, Any]) -> Iterator[Hazard]:
    """Of ext4: its fsync leaves the flush of the data's device to jbd2, whose commit may make none.

    "jbd2: add a missing data flush during file and fs synchronization", linux-ext4, 6 December
    2024; jbd2_trans_will_send_data_barrier() of Linux 6.1.
    """
    if case.get("filesystem") != "ext4" or case.get("journal_device", "none") == "none":
        return
    yield Hazard(_last(case), Cause.EXTERNAL_JOURNAL)
    if case.get("journal_mode") is not None:
        yield Hazard(Harm.DATABASE, Cause.EXTERNAL_JOURNAL)


def _of_log_across_segments(case: Mapping[str, Any]) -> Iterator[Hazard]:
    """Of NILFS2: a mount may take a super root whose log is not whole.

    A log that does not fit into what is left of a segment goes on in the next one, and nothing
    makes its first part durable before its last (nilfs_write_logs(), fs/nilfs2/segbuf.c). Where the
    first part is missing, nilfs_search_super_root() (recovery.c) still looks into the next segment
    (its label `strayed`), and takes the super root there (found by power cuts on Linux 6.1,
    docs/power-cuts.md).
    """
    reads = case.get("workload") == "file-read" or case.get("metadata_operation") == "stat"
    if case.get("filesystem") == "nilfs2" and not reads:
        yield Hazard(Harm.FILESYSTEM, Cause.LOG_ACROSS_SEGMENTS)


def _of_roll_forward(case: Mapping[str, Any]) -> Iterator[Hazard]:
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
    commits = case.get("journal_mode") is not None and case.get("synchronous") != "off"
    writes = case.get("workload") == "file-write" and case.get("sync_mode") not in _LAZY_SYNCS
    if commits or writes or case.get("workload") == "replay":
        yield Hazard(_last(case), Cause.ROLL_FORWARD)
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


def _of_mount(case: Mapping[str, Any]) -> Iterator[Hazard]:
    options = str(case.get("mount_options") or "").split(",")
    for option in options:
        if option in _NO_BARRIER:
            last = _last(case)
            database = [Harm.DATABASE] if last is Harm.COMMITS else []
            for harm in (last, *database, Harm.FILESYSTEM):
                yield Hazard(harm, Cause.NO_BARRIER, option)
    if "data=writeback" in options:  # ext4(5)
        yield Hazard(Harm.STALE_DATA, Cause.DATA_WRITEBACK)


def _of_sqlite(case: Mapping[str, Any]) -> Iterator[Hazard]:
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
    if int(case.get("databases") or 1) > 1:
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
        yield Hazard(_last(case), Cause.LAZY_SYNC_MODE, str(case["sync_mode"]))
    elif int(case.get("sync_every") or 1) > 1:
        yield Hazard(_last(case), Cause.SYNC_EVERY, str(case["sync_every"]))
    # fsync(2): that a file is synced does not mean that its name is; the directory must be.
    elif case.get("metadata_operation") not in (None, "stat") and case["sync_directory"] != "on":
        yield Hazard(_last(case), Cause.NO_DIRECTORY_SYNC)
