"""Describes what a power cut or a crash may destroy; computes nothing.

Gets hazards (jojlab/analysis/run/risks.py); returns sentences, and the short words of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jojlab.analysis.run.risks import Cause, Doubt, Harm, Hazard, Unknown
from jojlab.analysis.run.summary import CaseSummary

# The words of a column or a mark, in the order in which they are shown.
SHORT = {
    Harm.COMMITS: "last commits",
    Harm.WRITES: "last writes",
    Harm.NAMES: "last changes of names",
    Harm.TRANSACTION: "atomicity",
    Harm.DATABASE: "database",
    Harm.DATABASE_BY_CRASH: "database",
    Harm.FILESYSTEM: "filesystem",
    Harm.STALE_DATA: "contents",
    Harm.STATED: "see below",
}

# Of settings that risk nothing: the manuals promise nothing of the device or of faults in programs.
NONE = "no warning"
# Where too little is known for that.
NOT_KNOWN = "not known"

_MOST_NAMED = 3

_SENTENCES = {
    Cause.NO_JOURNAL: "journal_mode {}: a crash or a power cut during a commit can leave the "
    "database corrupt",
    Cause.SYNCHRONOUS_OFF: "synchronous OFF: a power cut can lose commits and corrupt the database",
    Cause.SYNCHRONOUS_NORMAL: "synchronous NORMAL: a power cut at the wrong moment may corrupt the "
    "database",
    Cause.WAL_NORMAL: "WAL with synchronous NORMAL: a power cut may lose the last commits, but "
    "nothing else",
    Cause.DELETE_FULL: "DELETE with synchronous FULL: a power cut just after a commit may undo it, "
    "because the removal of the journal is not synced; EXTRA syncs it",
    Cause.DROPPED_SYNC: "the syncs of the {} are left out: a power cut can undo what they protect",
    Cause.SYNC_OF_SIZE: "fdatasync-of-size: where a file's size is as before, neither its inode "
    "nor the device's cache is made durable; a power cut can lose commits and corrupt the database",
    Cause.SEVERAL_WALS: "WAL over several databases: a power cut may leave a transaction that "
    "changes several in only some of them",
    Cause.NO_SUPER_JOURNAL: "several databases without a super-journal: a power cut may leave a "
    "transaction that changes several in only some of them",
    Cause.UNSET_ATTACHED: "attached databases without the settings of the main one: a power cut "
    "may undo a commit in them, and leave a transaction in only some databases",
    Cause.LAZY_SYNC_MODE: "sync mode {}: a write that returned may still be in a cache",
    Cause.SYNC_EVERY: "one sync for {} operations: a power cut may lose those since the last sync",
    Cause.NO_DIRECTORY_SYNC: "no sync of the directory: a power cut may undo the operation",
    Cause.NO_BARRIER: "mount option {}: the filesystem sends no flush; a power cut can lose "
    "commits and corrupt the database and the filesystem",
    Cause.SHARED_FLUSH: "NILFS2: one of several concurrent syncs may return before the device has "
    "flushed its data; a power cut may lose that data",
    Cause.EXTERNAL_JOURNAL: "ext4 with its journal on another device: a sync may return before the "
    "data's device has flushed, by a fault of Linux (patched in December 2024); a power cut can "
    "lose commits and corrupt the database",
    Cause.ROLL_FORWARD: "F2FS: a second power cut, in the milliseconds in which a mount recovers "
    "from the first, may undo the first syncs since the last checkpoint and leave later ones: "
    "recovery writes over the nodes that it reads before its checkpoint is durable; it can lose "
    "commits and corrupt the database; mount option active_logs=2 makes each sync a checkpoint",
    Cause.LOG_ACROSS_SEGMENTS: "NILFS2: a power cut while a log is written that goes on in the "
    "next segment may leave the filesystem unmountable: recovery takes the log's end for whole "
    "where its beginning is missing",
    Cause.BATCH_COMMIT: "F2FS's batch atomic writes: the ioctl that commits a batch returns before "
    "the file's node is written (Linux 6.1 waits), and SQLite's sync waits for it only if it is "
    "fsync on a device with a volatile cache; a power cut may undo the last commits",
    Cause.DATA_WRITEBACK: "data=writeback: after a power cut, a file that had grown may contain "
    "old data of the device",
    Cause.VARIANT: "{}",
    Cause.UNSYNCED_FRAMES: "{} commits in WAL mode returned before their frames were synced, as "
    "with synchronous NORMAL: a power cut may lose the last commits",
    Cause.UNSYNCED_END: "{} returned before the end of their journal was synced: a power cut just "
    "after such a commit may undo it",
    Cause.EXPOSED_JOURNAL: "{} did not sync their journal before they counted on it, as with "
    "synchronous NORMAL or OFF: a power cut at the wrong moment may corrupt the database",
    Cause.UNSYNCED_DATABASE: "{} ended before their database was synced, as with synchronous OFF: "
    "a power cut can lose commits and corrupt the database",
    Cause.NO_JOURNAL_FILE: "{} commits had no journal file, as in journal_mode MEMORY or OFF: a "
    "crash or a power cut during a commit can leave the database corrupt",
}

_UNKNOWN = {
    Doubt.NO_SETTINGS: "with which settings its writes were made is not known",
    Doubt.NO_RULE: "what workload {} promises is not known",
    Doubt.NOT_SEEN: "its commits were not looked at",
    Doubt.LOST_CALLS: "the run is incomplete: commits may be missing among those that were seen",
    Doubt.NO_SQLITE: "no SQLite was seen in it: what it promises of its files is not known",
    Doubt.NO_COMMIT: "it has a database of SQLite, but no commit was found: how it makes one "
    "durable is not known",
    Doubt.FILESYSTEM: "what a sync promises on {} is not known",
}

# What is said of a file workload or a replay, which has no commits and no database.
_OF_FILES = {
    Cause.NO_BARRIER: "mount option {}: the filesystem sends no flush; a power cut can lose writes "
    "and names whose sync returned, and corrupt the filesystem",
    Cause.EXTERNAL_JOURNAL: "ext4 with its journal on another device: a sync may return before the "
    "data's device has flushed, by a fault of Linux (patched in December 2024); a power cut can "
    "lose what was synced",
    Cause.ROLL_FORWARD: "F2FS: a second power cut, in the milliseconds in which a mount recovers "
    "from the first, may undo the first syncs since the last checkpoint and leave later ones: "
    "recovery writes over the nodes that it reads before its checkpoint is durable; mount option "
    "active_logs=2 makes each sync a checkpoint",
}


def hazard_sentences(hazards: Iterable[Hazard]) -> tuple[str, ...]:
    """Return one sentence for each cause; one that may do several harms names them all."""
    found = tuple(hazards)
    of_files = not {Harm.WRITES, Harm.NAMES}.isdisjoint(each.kind for each in found)
    words = {**_SENTENCES, **_OF_FILES} if of_files else _SENTENCES
    return tuple(dict.fromkeys(words[each.cause].format(each.value or "?") for each in found))


def risk_words(hazards: Iterable[Hazard]) -> str:
    """Return what may be lost as a table shows it, such as "last commits, atomicity"."""
    kinds = {each.kind for each in hazards}
    words = dict.fromkeys(word for kind, word in SHORT.items() if kind in kinds)
    return ", ".join(words)


def doubt_sentences(unknowns: Iterable[Unknown]) -> tuple[str, ...]:
    """Return a sentence for each thing that is not known of a case."""
    nameless = {Doubt.FILESYSTEM: "its filesystem"}
    return tuple(
        _UNKNOWN[each.doubt].format(each.value or nameless.get(each.doubt, "?"))
        for each in unknowns
    )


def manuals(case: CaseSummary) -> str:
    """Return what the manuals say of a case as a table shows it: what is at risk, that too little
    is known, or that they warn of nothing.
    """
    if case.unknowns:
        return f"{risk_words(case.hazards)}; else {NOT_KNOWN}" if case.hazards else NOT_KNOWN
    return risk_words(case.hazards) or NONE


def risk_mark(case: CaseSummary) -> str:
    """Return what stands below a case's name; nothing where a commit survives a power cut."""
    if case.hazards:
        return f"at risk: {manuals(case)}"
    return f"safety: {NOT_KNOWN}" if case.unknowns else ""


def summarise_labels(labels: Sequence[str], of: int) -> str:
    """Return which cases a sentence is said of: all, some by name, or how many of how many."""
    if len(labels) == of:
        return "every case" if of > 1 else labels[0]
    if len(labels) <= _MOST_NAMED:
        return "; ".join(labels)
    return f"{len(labels)} of {of} cases"


def by_sentence(cases: Sequence[CaseSummary]) -> dict[str, list[str]]:
    """Return every sentence with the labels of the cases that it is said of: of what is at risk,
    then of what is not known.
    """
    found: dict[str, list[str]] = {}
    for case in cases:
        for sentence in hazard_sentences(case.hazards):
            found.setdefault(sentence, []).append(case.label)
    for case in cases:
        for sentence in doubt_sentences(case.unknowns):
            found.setdefault(f"{NOT_KNOWN}: {sentence}", []).append(case.label)
    return found
