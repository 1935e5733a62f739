"""What may a power cut or a crash destroy, by the settings of a case? What SQLite's and the
filesystems' manuals say of each setting, and one defect that power cuts found
(docs/power-cuts.md); jojlab/verify/durability.py holds it against power cuts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# File workloads whose writes stay in caches (the field sync_mode), by the manual pages of open,
# msync and sync_file_range.
_LAZY_SYNCS = ("none", "o_direct", "mmap", "mmap_async", "sync_file_range")
_NO_BARRIER = ("nobarrier", "barrier=0", "fsync_mode=nobarrier")


def risks(case: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is at risk; empty where a returned commit survives a power cut."""
    found = [*_of_sqlite(case), *_of_files(case)]
    options = str(case.get("mount_options") or "").split(",")
    if any(option in _NO_BARRIER for option in options):
        found.append(
            "the filesystem sends no flush: a power cut can lose commits and corrupt the database "
            "and the filesystem"
        )
    if case.get("filesystem") == "nilfs2" and _has_others(case):
        # nilfs_flush_device(), fs/nilfs2/the_nilfs.h of Linux 6.1: who finds ns_flushed_device set
        # does not wait for the flush of whoever set it.
        found.append(
            "NILFS2: a sync beside another may return before the device was flushed, and a power "
            "cut lose what it was for"
        )
    if "data=writeback" in options:  # ext4(5)
        found.append("after a power cut a file that had grown may hold old bytes of the device")
    return tuple(found)


def _has_others(case: Mapping[str, Any]) -> bool:
    """Whether several threads sync at a time."""
    several = any(int(case.get(field) or 1) > 1 for field in ("threads", "connections"))
    return several or case.get("background", "none") != "none"


def _of_sqlite(case: Mapping[str, Any]) -> list[str]:
    """Words of sqlite.org/pragma.html on journal_mode and synchronous."""
    journal, synchronous = case.get("journal_mode"), case.get("synchronous")
    if journal is None:
        return []
    found = []
    # With OFF, SQLite writes no batches: it does so in place of a journal in memory (bBatch in
    # sqlite3PagerCommitPhaseOne(), pager.c).
    batch = journal == "memory" and case.get("batch_atomic_write") == "on"
    if journal in ("off", "memory") and not batch:
        found.append(
            f"journal_mode {journal}: a crash during a commit can leave the database corrupt"
        )
    if synchronous == "off":
        found.append("synchronous OFF: a power cut can lose commits and corrupt the database")
    elif synchronous == "normal" and journal == "wal":
        found.append("synchronous NORMAL: a power cut may lose the last commits, and no more")
    elif synchronous == "normal":
        found.append("synchronous NORMAL: a power cut at the wrong moment may corrupt the database")
    elif journal == "delete" and synchronous == "full":
        found.append(
            "DELETE with synchronous FULL: a power cut just after a commit may undo it, as the "
            "removal of the journal is not synced; EXTRA syncs it"
        )
    if journal == "wal" and int(case.get("databases") or 1) > 1:
        found.append("WAL: a power cut may leave a transaction in some of its databases only")
    return found


def _of_files(case: Mapping[str, Any]) -> list[str]:
    if case.get("sync_mode") in _LAZY_SYNCS:
        return [f"sync mode {case['sync_mode']}: what was written may still be in a cache"]
    if int(case.get("sync_every") or 1) > 1:
        return [f"one sync for {case['sync_every']} operations: the last may be lost"]
    # fsync(2): that a file is synced does not mean that its name is; the directory must be.
    if case.get("metadata_operation") not in (None, "stat") and case["sync_directory"] != "on":
        return ["no sync of the directory: a power cut may undo it"]
    return []
