"""Says what `joj inspect` read of a path: the answer in a few lines, then what each fact means for
the cost and the safety of a commit. Computes nothing.
"""

from __future__ import annotations

import itertools
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console

from jojlab.analysis.run.risks import hazards
from jojlab.experiment.cases import complete
from jojlab.foundation.printable import printable, printable_name
from jojlab.inspection.database import (
    MOST_DATABASES,
    MOST_DEPTH,
    MOST_NAMES,
    Database,
    FolderContents,
    JournalMode,
)
from jojlab.inspection.storage import BlockDevice
from jojlab.inspection.target import VALUE_OF_MODE, Target, case_like
from jojlab.model.filesystem import mount_words
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Hazard
from jojlab.report.hazards import hazard_sentences, risk_words
from jojlab.report.shared.short_answer import MOST_COLUMNS, MOST_LINES
from jojlab.report.shared.short_answer import size as short_size
from jojlab.report.shared.text import count, duration, integer, size

# The shortest time to program a page among the devices of devices/ (nvme-plp: 185 us).
_SHORTEST_PROGRAM_NS = 185_000
_GIB = 1 << 30
_MEASURED = "joj bill --like FILE --durability"
# What mount options do that no hazard names (Linux 6.1, Documentation/filesystems).
_OPTIONS = {
    "commit": "seconds until the filesystem commits by itself, for which no sync waits",
    "discard": "the device is told of freed blocks, by requests of their own",
}
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_LEVELS = ("full", "normal")
_NO_WARNING = "the manuals warn of nothing"


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
    mount = target.mount
    lines = list(
        _folder_lines(target.folder, _place(target)) if target.folder else _identity(target)
    )
    if mount.filesystem in _IN_MEMORY:
        lines.append("It is in memory: nothing there survives the end of power.")
    else:
        lines += [_cache_sentence(target), *_safety(target)]
    if mount.filesystem in FILESYSTEMS and len(lines) < MOST_LINES:
        path = "FILE" if target.folder and target.folder.databases else target.path
        quoted = printable_name(shlex.quote(str(path)))
        lines.append(f"Nothing was measured: joj bill --like {quoted} tells the cost.")
    return tuple(lines)


def _place(target: Target) -> str:
    mount = target.mount
    below = ", below an overlay" * mount.is_upper
    return f"{mount.filesystem} ({printable_name(mount.source)}){below}"


def _identity(target: Target) -> Iterator[str]:
    database, place = target.database, _place(target)
    if database:
        mode = _MODES[database.journal_mode]
        yield f"{_name(target)} is a database of SQLite, journal mode {mode}, on {place}."
        if database.is_hot:
            yield (
                "A transaction's journal lies beside it: in use, or of a crash; opening it then "
                "undoes it."
            )
    elif target.path.is_dir():
        yield f"{_name(target)} is a folder on {place}."
    else:
        yield f"{_name(target)} is on {place}; it has no header of SQLite that one can read."


def _folder_lines(folder: FolderContents, place: str) -> Iterator[str]:
    """Yield what databases are in a folder, and what was not read."""
    name, databases = printable_name(folder.path.name or str(folder.path)), folder.databases
    found = f"{len(databases):,} database{'s' * (len(databases) != 1)} of SQLite"
    whole = sum(each.file_bytes for each in databases)
    amount = f" ({short_size(whole)})" if databases else ""
    files = integer(folder.files, "file")
    yield f"{name} is a folder on {place}: {found}{amount} in {files}."
    if databases:
        modes = (f"{number} {_SHORT_MODES[mode]}" for mode, number in folder.modes().items())
        pages = folder.page_sizes()
        sizes = (
            f"{size(page)}{f' ({number})' * (len(pages) > 1)}" for page, number in pages.items()
        )
        yield f"Journal: {', '.join(modes)}. Pages of {', '.join(sizes)}."
    wals = [each.wal_bytes for each in databases if each.wal_bytes]
    hot = sum(each.is_hot for each in databases)
    beside = [
        f"{len(wals)} with a WAL ({short_size(sum(wals))})" if wals else "",
        f"{hot} with a transaction's journal" if hot else "",
    ]
    if any(beside):
        words = " and ".join(filter(None, beside))
        yield f"Open, or left by a crash, or kept: {words}."
    if gaps := _gaps(folder):
        yield f"Not read: {gaps}."


def _gaps(folder: FolderContents) -> str:
    """Return what of a folder was not read; empty where all was."""
    cut = 0
    if folder.is_cut:
        cut = MOST_DATABASES if len(folder.databases) >= MOST_DATABASES else MOST_NAMES
    counts = (
        (folder.unread, "unreadable", "unreadable"),
        (folder.links, "link", ""),
        (folder.other_filesystems, "folder of another filesystem", "folders of other filesystems"),
        (folder.deeper, f"folder below {MOST_DEPTH} others", f"folders below {MOST_DEPTH} others"),
        (
            folder.headless,
            "file with a journal but no header",
            "files with a journal but no header",
        ),
    )
    words = [f"all beyond {cut:,} {'names' if cut == MOST_NAMES else 'databases'}"] if cut else []
    words += [integer(number, one, several) for number, one, several in counts if number]
    return ", ".join(words)


def facts(target: Target) -> Iterator[Reading]:
    """Yield what was read, from the database down to the device."""
    if target.database:
        yield from _database_facts(target.database)
    if target.folder:
        for mode, number in target.folder.modes().items():
            yield Reading(_MODES[mode], integer(number, "database"), _MEANINGS[mode], "joj advise")
        if wals := sum(bool(each.wal_bytes) for each in target.folder.databases):
            yield Reading("WAL", integer(wals, "database"), _WAL_MEANING)
    databases = [target.database] if target.database else []
    if target.folder:
        databases += target.folder.databases
    for page_bytes in sorted({each.page_bytes for each in databases}):
        yield Reading("pages", size(page_bytes), "a commit writes whole ones", "joj run page-size")
    blocks = f", blocks of {size(target.block_bytes)}" if target.block_bytes else ""
    yield Reading("filesystem", target.mount.filesystem, f"mounted on {target.mount.point}{blocks}")
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
        meaning = _sync_meaning(target)
        yield Reading("sync", duration(target.sync_ns), meaning, "joj bench sqlite DIR")


_MODES = {
    JournalMode.WAL: "WAL",
    JournalMode.TRUNCATE: "TRUNCATE",
    JournalMode.PERSIST: "PERSIST",
    JournalMode.NO_JOURNAL_FILE: "DELETE, MEMORY or OFF",
    JournalMode.IN_A_TRANSACTION: "DELETE, TRUNCATE or PERSIST",
}
_SHORT_MODES = {
    **_MODES,
    JournalMode.NO_JOURNAL_FILE: "no file",
    JournalMode.IN_A_TRANSACTION: "in use",
}


def _name(target: Target) -> str:
    return printable_name(target.path.name or str(target.path))


def _cache_sentence(target: Target) -> str:
    device = target.device
    if not device:
        return "Which device is under it, and what a sync does there, is not known."
    if device.write_cache is None:
        return f"Whether {device.name} has a volatile cache is not known."
    if device.write_cache and (option := _barrier_off(target)):
        return f"{device.name} has a volatile cache, and with {option} no flush is sent to it."
    if device.write_cache:
        return f"{device.name} has a volatile cache: only a flush makes a commit durable."
    return f"{device.name} says that it has no volatile cache; if so, a completed write is durable."


def _barrier_off(target: Target) -> str:
    """Return the mount option by which the filesystem sends no flush; empty where there is none."""
    filesystem = FILESYSTEMS.get(target.mount.filesystem)
    known = filesystem.barrier_off if filesystem else ()
    return next((each for each in target.mount.options if each in known), "")


def _modes(target: Target) -> tuple[JournalMode, ...]:
    """Return the journal modes of a database, or of those in a folder."""
    if target.database:
        return (target.database.journal_mode,)
    return tuple(target.folder.modes()) if target.folder else ()


def _hazards(target: Target, modes: Iterable[str], levels: Iterable[str]) -> list[Hazard]:
    """Return what the manuals say that settings risk there, by level and mode; each once."""
    fields, _ = case_like(target)
    case = complete(fields)
    found = (
        hazard
        for level, mode in itertools.product(levels, modes)
        for hazard in hazards({**case, "journal_mode": mode, "synchronous": level})
    )
    return list(dict.fromkeys(found))


def _safety(target: Target) -> Iterator[str]:
    """Yield what the manuals say of the settings of databases; no file tells `synchronous`."""
    modes = _modes(target)
    if not modes or target.mount.filesystem not in FILESYSTEMS:
        if target.folder is None or target.folder.databases:
            yield "What a power cut leaves of it is not known."
        return
    values = dict.fromkeys(VALUE_OF_MODE[mode] for mode in modes)
    if target.folder:
        yield f"By mode and synchronous, {_warning(target, values, _LEVELS)}."
        return
    # No file tells MEMORY and OFF from DELETE.
    begin = "If DELETE, s" if JournalMode.NO_JOURNAL_FILE in modes else "S"
    for level in _LEVELS:
        yield f"{begin}ynchronous {level.upper()}: {_warning(target, values, (level,))}."
    if JournalMode.NO_JOURNAL_FILE in modes:
        risk = _volatile_risk(target)
        yield f"If MEMORY or OFF, a power cut or a crash of the app may take {risk}."


def _warning(target: Target, modes: Iterable[str], levels: Iterable[str]) -> str:
    found = _hazards(target, modes, levels)
    return f"a power cut may take {risk_words(found)} (below)" if found else _NO_WARNING


def _volatile_risk(target: Target) -> str:
    """Return what a crash may take of a database whose journal is in memory, or that has none."""
    return risk_words(_hazards(target, ("memory", "off"), ("full",)))


_MEANINGS = {
    JournalMode.WAL: "stands in the file; with FULL a commit syncs the WAL, with NORMAL only a "
    "checkpoint syncs",
    JournalMode.NO_JOURNAL_FILE: "no journal lies beside it, and none of these leaves one",
    JournalMode.TRUNCATE: "an empty journal lies beside it",
    JournalMode.PERSIST: "a journal with a cleared header lies beside it",
    JournalMode.IN_A_TRANSACTION: "a journal that is in use or was left by a crash lies there",
}


_WAL_MEANING = "the app runs, ended without closing it, or keeps it"


def _database_facts(database: Database) -> Iterator[Reading]:
    mode = database.journal_mode
    yield Reading("journal mode", _MODES[mode], _MEANINGS[mode], "joj advise")
    yield Reading("database", size(database.file_bytes))
    if database.wal_bytes is not None:
        yield Reading(
            "WAL",
            size(database.wal_bytes),
            f"room for {count(database.wal_frames, 'frame')}: {_WAL_MEANING}",
        )
    if database.auto_vacuum != "none":
        yield Reading(
            "auto_vacuum", database.auto_vacuum, "a commit that frees pages moves others to them"
        )
    if database.application_id:
        number = f"{database.application_id} (0x{database.application_id & 0xFFFFFFFF:08x})"
        yield Reading("application_id", number, "the app's mark on its files; it costs nothing")


def table(folder: FolderContents) -> Iterator[str]:
    """Yield a header and a line for each database of a folder."""
    if not folder.databases:
        return
    yield f"{'journal mode':<14} {'pages':>7} {'database':>10} {'WAL':>10}  file"
    for each in folder.databases:
        wal = "–" if each.wal_bytes is None else short_size(each.wal_bytes)
        path = printable_name(str(each.path.relative_to(folder.path)))
        yield (
            f"{_SHORT_MODES[each.journal_mode]:<14} {size(each.page_bytes):>7} "
            f"{short_size(each.file_bytes):>10} {wal:>10}  {path}"
        )


def print_inspection(console: Console, target: Target) -> None:
    """Print the answer, the databases of a folder, and what each fact means."""

    def show(line: str, indent: int) -> None:
        columns = min(MOST_COLUMNS, console.width)
        lines = textwrap.wrap(line, columns, subsequent_indent=" " * indent)
        console.print("\n".join(lines), markup=False, emoji=False, soft_wrap=True)

    for line in answer(target):
        show(line, 2)
    console.print()
    for line in table(target.folder) if target.folder else ():
        show(line, 46)
    if target.folder and target.folder.databases:
        console.print()
    for fact in facts(target):
        words = f"{fact.name:<14} {printable(fact.value)}"
        if fact.meaning:
            words += f": {printable(fact.meaning)}"
        if fact.command:
            words += f" ({fact.command})"
        show(words, 15)


def _mount_facts(target: Target) -> Iterator[Reading]:
    options = target.mount.options
    told = [
        f"{option}: {_OPTIONS[name]}"
        for option in options
        if (name := option.partition("=")[0]) in _OPTIONS
    ]
    yield Reading("mount options", ", ".join(options), "; ".join(told))
    if target.mount.filesystem not in FILESYSTEMS:
        return
    modes = [VALUE_OF_MODE[mode] for mode in _modes(target)]
    # With WAL and FULL, SQLite itself risks nothing: what is left is the filesystem's.
    found = _hazards(target, modes or ("wal",), _LEVELS if modes else ("full",))
    pages = {hazard_sentences([each])[0]: each.cause.page for each in found}
    for sentence, page in pages.items():
        yield Reading("at risk", sentence, f"see {page}", _MEASURED)
    if target.folder and JournalMode.NO_JOURNAL_FILE in _modes(target):
        risk = _volatile_risk(target)
        yield Reading("at risk", f"MEMORY or OFF: a crash of the app may take {risk} too")
    fields, _ = case_like(target)
    if {"sync", "dirsync"} & set(mount_words(fields)):
        yield Reading("sync option", "set", "each write or change of a name is synced by itself")


_CACHES = {
    True: "what no flush has followed is lost with the power",
    False: "by its own word; a completed write then needs no flush",
    None: "",
}


def _device_facts(device: BlockDevice) -> Iterator[Reading]:
    yield Reading("device", device.name, device.interface)
    is_loop = device.name.startswith("loop")
    if device.below:
        flushes = "a flush is an fsync of it" if is_loop else "flushes go to each of them"
        yield Reading("made of", ", ".join(device.below), flushes, "joj inspect FILE" * is_loop)
    cache = device.write_cache
    yield Reading("volatile cache", _yes(cache), _CACHES[cache], "joj run what-is-lost")
    yield Reading(
        "FUA",
        _yes(device.fua),
        "a write with FUA is a write and a flush" if device.fua is False else "",
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
    # DEVICE_LIFE_TIME_EST_TYP_A and _B of eMMC (JESD84-B51), bDeviceLifeTimeEstA and B of UFS.
    steps = "its own estimate: 0x01 is up to 10 % of its life, 0x0a up to 100, 0x0b past it"
    if device.wear:
        yield Reading("wear", device.wear, f"{steps}; 0x00 says nothing")
    else:
        yield Reading("wear", "not told by /sys; a drive of NVMe tells it to nvme-cli")


def _sync_meaning(target: Target) -> str:
    assert target.sync_ns is not None
    if target.mount.filesystem in _IN_MEMORY:
        return "in memory, where a sync does nothing"
    if option := _barrier_off(target):
        return f"an overwrite of 4 KiB with fdatasync, which sends no flush with {option}"
    if target.sync_ns < _SHORTEST_PROGRAM_NS:
        return (
            f"suspicion: no flash of devices/ programs a page in less than "
            f"{duration(_SHORTEST_PROGRAM_NS)}. Power-loss protection explains it, and so does a "
            "device or a host that ignores flushes"
        )
    return "an overwrite of 4 KiB with fdatasync, the median of 64"


def _yes(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"
