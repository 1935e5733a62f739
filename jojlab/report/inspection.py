"""Says what `joj inspect` read of a path: the answer in a few lines, then what each fact means for
the cost and the safety of a commit. Computes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from jojlab.analysis.run.risks import hazards
from jojlab.experiment.cases import complete
from jojlab.foundation.printable import printable
from jojlab.inspection.database import Database, JournalMode
from jojlab.inspection.storage import BlockDevice
from jojlab.inspection.target import Target, case_like
from jojlab.model.filesystem import mount_words
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.report.hazards import hazard_sentences, risk_words
from jojlab.report.shared.text import count, duration, size

# The shortest time to program a page among the devices of devices/ (nvme-plp: 185 us).
_SHORTEST_PROGRAM_NS = 185_000
_GIB = 1 << 30
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True)
class Reading:
    """One thing that was read, and what it means; `command` would measure it."""

    name: str
    value: str
    meaning: str = ""
    command: str = ""


def answer(target: Target) -> tuple[str, ...]:
    """Return the answer: what it is, whether a commit survives there, and what would tell its
    cost.
    """
    database, mount = target.database, target.mount
    place = f"{mount.filesystem} ({printable(mount.source)})"
    lines = []
    if database:
        lines.append(
            f"{_name(target)} is a database of SQLite, journal mode "
            f"{_MODES[database.journal_mode]}, on {place}."
        )
    elif target.path.is_dir():
        lines.append(f"{_name(target)} is a folder on {place}.")
    else:
        lines.append(
            f"{_name(target)} is on {place}; it has no header of SQLite that one can read."
        )
    lines.append(_cache_sentence(target))
    lines += _safety(target)
    if mount.filesystem in FILESYSTEMS:
        quoted = shlex.quote(str(target.path))
        lines.append(f"Nothing was measured: joj bill --like {printable(quoted)} tells the cost.")
    return tuple(lines)


def facts(target: Target) -> Iterator[Reading]:
    """Yield what was read, from the database down to the device."""
    if target.database:
        yield from _database_facts(target.database)
    yield Reading("filesystem", target.mount.filesystem, f"mounted on {target.mount.point}")
    yield from _mount_facts(target)
    if target.device:
        yield from _device_facts(target.device)
    if library := target.library:
        build = f"; built with {', '.join(library.options)}" if library.options else ""
        sync = f"syncs by {library.syncs_by}" if library.syncs_by else "its sync call is not known"
        meaning = f"{sync}{build}. An app may carry another one"
        if library.syncs_by == "fsync":
            meaning += "; fsync also writes the inode, where fdatasync need not"
        yield Reading("SQLite", library.version, meaning, "joj bill --sync-call fdatasync")
    else:
        yield Reading("SQLite", "not found", "the loader knows no library of that name")
    if target.sync_ns is not None:
        yield Reading("sync", duration(target.sync_ns), _sync_meaning(target))


_MODES = {
    JournalMode.WAL: "WAL",
    JournalMode.TRUNCATE: "TRUNCATE",
    JournalMode.PERSIST: "PERSIST",
    JournalMode.NO_JOURNAL_FILE: "DELETE, MEMORY or OFF",
    JournalMode.IN_A_TRANSACTION: "DELETE, TRUNCATE or PERSIST",
}


def _name(target: Target) -> str:
    return printable(target.path.name or str(target.path))


def _cache_sentence(target: Target) -> str:
    device = target.device
    if target.mount.filesystem in _IN_MEMORY:
        return "It is in memory: nothing there survives the end of power."
    if not device:
        return "No block device of this machine is under it: what a sync does is not known."
    if device.write_cache is None:
        return f"Whether {device.name} has a volatile cache is not known."
    if device.write_cache:
        return f"{device.name} has a volatile cache: only a flush makes a commit durable."
    return f"{device.name} says that it has no volatile cache: a completed write is durable."


def _safety(target: Target) -> Iterator[str]:
    """Yield what the manuals say of a database's settings; no file tells `synchronous`."""
    if not target.database or target.mount.filesystem not in FILESYSTEMS:
        yield "What a power cut leaves of it is not known."
        return
    fields, _ = case_like(target)
    case = complete({**fields, "workload": "sqlite-insert"})
    for synchronous in ("full", "normal"):
        found = hazards({**case, "synchronous": synchronous})
        sentence = f"synchronous {synchronous.upper()}: "
        if not found:
            sentence += "the manuals warn of nothing"
        else:
            sentence += f"may lose {risk_words(found)} at a power cut (below)"
        yield sentence[0].upper() + sentence[1:] + "."


def _database_facts(database: Database) -> Iterator[Reading]:
    modes = {
        JournalMode.WAL: "stands in the file; a commit is one sync of the WAL with synchronous "
        "FULL; with NORMAL only checkpoints sync",
        JournalMode.NO_JOURNAL_FILE: "no journal lies beside it, and none of these leaves one",
        JournalMode.TRUNCATE: "an empty journal lies beside it",
        JournalMode.PERSIST: "a journal with a cleared header lies beside it",
        JournalMode.IN_A_TRANSACTION: "a journal that is in use or was left by a crash lies there",
    }
    yield Reading(
        "journal mode",
        _MODES[database.journal_mode],
        modes[database.journal_mode],
        "joj advise",
    )
    yield Reading("database", size(database.file_bytes), f"pages of {size(database.page_bytes)}")
    if database.wal_bytes is not None:
        yield Reading(
            "WAL",
            size(database.wal_bytes),
            f"room for {count(database.wal_frames, 'frame')}: the app runs, ended without closing "
            "it, or keeps it",
        )
    if database.auto_vacuum != "none":
        yield Reading(
            "auto_vacuum", database.auto_vacuum, "a commit that frees pages moves others to them"
        )


def _mount_facts(target: Target) -> Iterator[Reading]:
    yield Reading("mount options", ",".join(target.mount.options))
    filesystem = FILESYSTEMS.get(target.mount.filesystem)
    if not filesystem:
        return
    fields, _ = case_like(target)
    case = complete({**fields, "workload": "sqlite-insert"})
    if not target.database:
        case["journal_mode"] = "wal"
    risks = (sentence for each in ("full", "normal") for sentence in
             hazard_sentences(hazards({**case, "synchronous": each})))  # fmt: skip
    for sentence in dict.fromkeys(risks):
        yield Reading("at risk", sentence, "", "joj verify durability")
    if {"sync", "dirsync"} & set(mount_words(fields)):
        yield Reading("sync option", "set", "each write or change of a name is synced by itself")


def _device_facts(device: BlockDevice) -> Iterator[Reading]:
    yield Reading("device", device.name, device.interface)
    if device.below:
        yield Reading("made of", ", ".join(device.below), "flushes go to each of them")
    yield Reading("volatile cache", _yes(device.write_cache))
    yield Reading(
        "FUA", _yes(device.fua), "" if device.fua else "a write with FUA is a write and a flush"
    )
    if device.rotational:
        yield Reading(
            "rotational", "yes", "by its own word, which a virtual disk often says wrongly"
        )
    if device.written_bytes is not None:
        flushed = (
            "" if device.flushes is None else f", and {count(device.flushes, 'flush', 'flushes')}"
        )
        written = f"{device.written_bytes / _GIB:.1f} GiB written{flushed}"
        yield Reading("since boot", written, "by its counters", "joj trace tells by whom")
    yield Reading("wear", device.wear or "not told by /sys; a drive of NVMe tells it to nvme-cli")


def _sync_meaning(target: Target) -> str:
    assert target.sync_ns is not None
    if target.mount.filesystem in _IN_MEMORY:
        return "in memory, where a sync does nothing"
    if target.sync_ns < _SHORTEST_PROGRAM_NS:
        return (
            f"suspicion: no flash of devices/ programs a page in less than "
            f"{duration(_SHORTEST_PROGRAM_NS)}. Power-loss protection explains it, and so does a "
            "device or a host that ignores flushes"
        )
    return "an overwrite of 4 KiB with fdatasync, the median of 64"


def _yes(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"
