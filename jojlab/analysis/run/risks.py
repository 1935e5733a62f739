"""What may a power cut or a crash destroy, by the settings of a case, and which guarantee holds?

Reads the fields of a case, and what was seen of its commits; gives its hazards: what SQLite's and
the filesystems' manuals say of each setting, and defects that power cuts found
(docs/power-cuts.md). Of a program and of a replay, whose settings nobody knows, its commits say it
(docs/commits.md). Gives too what is not known: where nothing is at risk that is known, but too
little is, nothing is called safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from jojlab.analysis.run.durability import Durability
from jojlab.model import hazards as causes
from jojlab.model.fields import BY_NAME
from jojlab.model.filesystem import mount_words
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Doubt, Harm, Hazard, ModeCounts, Observation, Stakes, Unknown
from jojlab.model.workloads import WORKLOADS
from jojlab.model.workloads.files import LAZY_SYNC_MODES

_NOTHING = Observation()


def hazards(
    case: Mapping[str, Any], stated: str = "", observation: Observation = _NOTHING
) -> tuple[Hazard, ...]:
    """Return what is at risk; empty where nothing is that is known: see unknowns().

    `stated` is what a variant's author says beside that.
    """
    found = [
        *_sqlite_hazards(case, observation),
        *_commit_hazards(observation),
        *_file_hazards(case),
        *_filesystem_hazards(case, observation),
    ]
    if stated:
        found.append(Hazard(Harm.STATED, causes.VARIANT, stated))
    return tuple(dict.fromkeys(found))


def unknowns(case: Mapping[str, Any], observation: Observation = _NOTHING) -> tuple[Unknown, ...]:
    """Return what is not known of a case; where nothing is, and it has no hazards, the manuals say
    that a returned commit survives a power cut.
    """
    workload = str(case.get("workload") or "")
    if not workload and case.get("journal_mode") is None:
        return (Unknown(Doubt.NO_SETTINGS),)
    found: list[Unknown] = []
    if workload in WORKLOADS:
        if WORKLOADS[workload].is_foreign:
            found += _doubts_of_sight(observation)
    elif workload:
        found.append(Unknown(Doubt.NO_RULE, workload))
    filesystem = str(case.get("filesystem") or "")
    if filesystem not in FILESYSTEMS:
        found.append(Unknown(Doubt.FILESYSTEM, filesystem))
    return tuple(found)


def _doubts_of_sight(observation: Observation) -> Iterator[Unknown]:
    """Yield what is not known of a program or a replay, by what was seen of its commits."""
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
    """Return the hazards that power cuts of a case can show: of a replay, those of its syncs."""
    workload = WORKLOADS.get(str(case.get("workload")))
    if not workload or not workload.judges_syncs:
        return tuple(hazards)
    of_commits = (Harm.COMMITS, Harm.TRANSACTION, Harm.DATABASE, Harm.DATABASE_BY_CRASH)
    return tuple(each for each in hazards if each.kind not in of_commits)


def risks_more(hazards: Iterable[Hazard], others: Iterable[Hazard]) -> bool:
    """Return whether some harm is possible by `hazards` that is not by `others`."""
    return not {each.harm for each in hazards} <= {each.harm for each in others}


def _stakes(case: Mapping[str, Any], observation: Observation) -> Stakes | None:
    """Return what a case can lose; None of a workload that jojlab does not know."""
    name = case.get("workload")
    # Without a workload, its settings of SQLite were found elsewhere.
    workload = WORKLOADS.get(str(name or BY_NAME["workload"].default))
    if not workload or (not name and case.get("journal_mode") is None):
        return None
    found = workload.finds_commits and bool(observation.modes)
    several = any(int(case.get(field) or 1) > 1 for field in ("threads", "connections"))
    return Stakes(
        last=Harm.COMMITS if found else workload.harm,
        has_database=found or workload.harm is Harm.COMMITS,
        is_concurrent=several or case.get("background", "none") != "none",
        is_lazy=case.get("sync_mode") in LAZY_SYNC_MODES,
        reads_only=workload.reads_only(case),
    )


def _filesystem_hazards(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    filesystem = FILESYSTEMS.get(str(case.get("filesystem")))
    stakes = _stakes(case, observation)
    if not filesystem or not stakes:
        return
    for option in mount_words(case):
        if option in filesystem.barrier_off:
            yield from stakes.sync_hazards(causes.NO_BARRIER, option)
            yield Hazard(Harm.FILESYSTEM, causes.NO_BARRIER, option)
    yield from filesystem.hazards(case, stakes)


def _commit_hazards(observation: Observation) -> Iterator[Hazard]:
    """Hazards by what was seen of the commits of a program or a replay: the syncs that they lack
    say what synchronous is (sqlite.org/pragma.html), and what ends them the journal mode.
    """
    modes = observation.modes or {}
    total = sum(counts.commits for counts in modes.values())
    commits = f"{total:,} commit{'s' * (total != 1)}"
    for mode, counts in sorted(modes.items()):
        share = f"{{:,}} of {commits} ({mode.upper()})"
        if mode == "none":
            value = f"{counts.commits:,} of {commits}"
            for harm in (Harm.DATABASE_BY_CRASH, Harm.DATABASE):
                yield Hazard(harm, causes.NO_JOURNAL_FILE, value)
        if mode == "wal" and counts.end_unsynced:
            yield Hazard(Harm.COMMITS, causes.UNSYNCED_FRAMES, share.format(counts.end_unsynced))
        if mode == "batch-atomic":
            yield Hazard(Harm.COMMITS, causes.BATCH_COMMIT)
        if mode in ("delete", "truncate", "persist"):
            yield from _rollback_journal_hazards(counts, share)
        if counts.several_databases:
            several = causes.SEVERAL_WALS if mode == "wal" else causes.NO_SUPER_JOURNAL
            yield Hazard(Harm.TRANSACTION, several)


def _rollback_journal_hazards(counts: ModeCounts, share: str) -> Iterator[Hazard]:
    for count, cause, harms in (
        (counts.end_unsynced, causes.UNSYNCED_END, (Harm.COMMITS,)),
        (counts.journal_exposed, causes.EXPOSED_JOURNAL, (Harm.DATABASE,)),
        (counts.database_unsynced, causes.UNSYNCED_DATABASE, (Harm.COMMITS, Harm.DATABASE)),
    ):
        if count:
            yield from (Hazard(harm, cause, share.format(count)) for harm in harms)


def _sqlite_hazards(case: Mapping[str, Any], observation: Observation) -> Iterator[Hazard]:
    """Hazards by sqlite.org/pragma.html on journal_mode and synchronous: of each journal mode that
    there is on the way.
    """
    if case.get("journal_mode") is not None:
        for journal in (str(case["journal_mode"]), *observation.journal_modes):
            yield from _mode_hazards(case, journal, observation)


def _mode_hazards(
    case: Mapping[str, Any], journal: str, observation: Observation
) -> Iterator[Hazard]:
    synchronous = case.get("synchronous")
    # With OFF, SQLite writes no batches: it does so in place of a journal in memory (bBatch in
    # sqlite3PagerCommitPhaseOne(), pager.c).
    batch = journal == "memory" and case.get("batch_atomic_write") == "on"
    if journal in ("off", "memory") and not batch:
        for harm in (Harm.DATABASE_BY_CRASH, Harm.DATABASE):
            yield Hazard(harm, causes.NO_JOURNAL, journal)
    if synchronous == "off":
        yield Hazard(Harm.COMMITS, causes.SYNCHRONOUS_OFF)
        yield Hazard(Harm.DATABASE, causes.SYNCHRONOUS_OFF)
    elif synchronous == "normal" and journal == "wal":
        yield Hazard(Harm.COMMITS, causes.WAL_NORMAL)
    elif synchronous == "normal":
        yield Hazard(Harm.DATABASE, causes.SYNCHRONOUS_NORMAL)
    # joj_redo's journals are no files.
    elif journal == "delete" and synchronous == "full" and case.get("vfs") != "redo":
        yield Hazard(Harm.COMMITS, causes.DELETE_FULL)
    dropped = str(case.get("dropped_sync") or "none")
    if dropped != "none":
        yield Hazard(Harm.COMMITS, causes.DROPPED_SYNC, dropped)
        yield Hazard(Harm.DATABASE, causes.DROPPED_SYNC, dropped)
    if case.get("sync_call") == "fdatasync-of-size":
        yield Hazard(Harm.COMMITS, causes.SYNC_OF_SIZE)
        yield Hazard(Harm.DATABASE, causes.SYNC_OF_SIZE)
    if max(int(case.get("databases") or 1), observation.databases) > 1:
        # Without a super-journal each database commits by itself (sqlite.org/lang_attach.html;
        # vdbeCommit() in vdbeaux.c).
        if case.get("attached_settings") == "sqlite":
            # They are in DELETE mode, which a main database in another may not share a
            # super-journal with.
            yield Hazard(Harm.COMMITS, causes.UNSET_ATTACHED)
            yield Hazard(Harm.TRANSACTION, causes.UNSET_ATTACHED)
        elif journal == "wal":
            yield Hazard(Harm.TRANSACTION, causes.SEVERAL_WALS)
        elif journal in ("off", "memory") or synchronous == "off":
            yield Hazard(Harm.TRANSACTION, causes.NO_SUPER_JOURNAL)


def _file_hazards(case: Mapping[str, Any]) -> Iterator[Hazard]:
    if case.get("sync_mode") in LAZY_SYNC_MODES:
        yield Hazard(Harm.WRITES, causes.LAZY_SYNC_MODE, str(case["sync_mode"]))
    elif int(case.get("sync_every") or 1) > 1:
        yield Hazard(Harm.WRITES, causes.SYNC_EVERY, str(case["sync_every"]))
    # fsync(2): that a file is synced does not mean that its name is; the directory must be.
    elif case.get("metadata_operation") not in (None, "stat") and case["sync_directory"] != "on":
        yield Hazard(Harm.NAMES, causes.NO_DIRECTORY_SYNC)


class Guarantee(StrEnum):
    """A guarantee that must hold. `durable`: every commit that returned is there. `consistent`:
    commits may be missing, the last ones first, but what is there is what was once committed.
    `none`: nothing.
    """

    DURABLE = "durable"
    CONSISTENT = "consistent"
    NONE = "none"


# Outcomes of a state that break no promise.
_ALLOWED = {
    Guarantee.DURABLE: frozenset({"kept"}),
    Guarantee.CONSISTENT: frozenset({"kept", "lost"}),
}


def breaks(outcome: str, guarantee: Guarantee) -> bool:
    """Return whether a state with this outcome breaks the guarantee."""
    return guarantee is not Guarantee.NONE and outcome not in _ALLOWED[guarantee]


def broken_states(durability: Durability, guarantee: Guarantee) -> int:
    """Return how many of the states that were judged break the guarantee."""
    return sum(count for name, count in durability.outcomes.items() if breaks(name, guarantee))
