"""The way to other settings: a label that tells them apart, lines to paste, what is given up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from jojlab.advise.space import MAIN
from jojlab.analysis.run.risks import hazards as risks
from jojlab.model.field import Value
from jojlab.model.filesystem import NO_DEVICE
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Observation
from jojlab.report import hazards
from jojlab.report.shared import text

Differences = Mapping[str, tuple[Value, Value]]


def settings_label(settings: Mapping[str, Value]) -> str:
    """Return the settings that tell choices apart, in a few words."""
    words = [str(settings["filesystem"])]
    for name in ("journal_mode", "synchronous", "sync_call"):
        words += [str(settings[name])] if name in settings else []
    if settings.get("batch_atomic_write") == "on":
        words.append("batch atomic writes")
    if settings.get("locking_mode") == "exclusive":
        words.append("exclusive")
    if _has_frames_when_closed(settings):
        words.append("no checkpoint when closed")
    if settings.get("vfs", "none") != "none":
        words.append(f"vfs={settings['vfs']}")
    if "page_size_bytes" in settings:
        words.append(f"pages of {text.size(int(settings['page_size_bytes']))}")
    if settings.get("journal_mode") == "wal":
        words.append(f"checkpoint at {settings['wal_autocheckpoint_pages']} pages")
    words += [str(settings[name]) for name in ("mkfs_options", "mount_options") if settings[name]]
    if settings["journal_device"] != NO_DEVICE:
        words.append(f"journal on {settings['journal_device']}")
    return ", ".join(words)


def lines_to_paste(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str] = (MAIN,)
) -> list[str]:
    """Return what to paste, with the file or program that each part is for as a comment. A PRAGMA
    is given for each of the `schemas`, as it was when the settings were tested.
    """
    set_ones = schemas[:1] if settings.get("attached_settings") == "sqlite" else schemas
    return [
        *_vfs_lines(settings),
        *_database_lines(settings, changed, schemas),
        *_app_lines(settings, changed, set_ones),
        *_build_lines(settings, changed),
        *_disk_lines(settings, changed),
    ]


def _has_frames_when_closed(settings: Mapping[str, Value]) -> bool:
    has_wal = settings.get("journal_mode") == "wal"
    return has_wal and settings.get("checkpoint_when_closed") == "off"


def _vfs_lines(settings: Mapping[str, Value]) -> Iterator[str]:
    if (vfs := settings.get("vfs", "none")) != "none":
        yield "# the app keeps its code; docs/cure.md has the lines for C, Rust, Go and others"
        yield f"LD_PRELOAD=$(joj cure --path)/joj_{vfs}_preload.so APP"


def _database_lines(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str]
) -> Iterator[str]:
    """Yield what changes the file: SQLite changes no page size in WAL mode (sqlite.org/pragma)."""
    if "page_size_bytes" not in changed:
        return
    several = len(schemas) > 1
    after = "after ATTACH, " if several else ""
    what = "databases" if several else "database"
    yield f"-- SQL, once, {after}while no other connection is open: writes the {what} anew"
    for name, prefix in _prefixes(schemas):
        yield f"PRAGMA {prefix}journal_mode = DELETE;"
        yield f"PRAGMA {prefix}page_size = {settings['page_size_bytes']};"
        yield f"VACUUM {name};" if several else "VACUUM;"


def _app_lines(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str]
) -> Iterator[str]:
    """Yield what a connection sets, by schema: without a name a PRAGMA is of main alone."""
    if "journal_mode" not in settings:
        return
    when = ", after ATTACH" if len(schemas) > 1 else ""
    yield f"-- SQL, whenever the database is opened{when}"
    for _, prefix in _prefixes(schemas):
        if settings.get("locking_mode") == "exclusive" or "locking_mode" in changed:
            yield f"PRAGMA {prefix}locking_mode = {str(settings['locking_mode']).upper()};"
        yield f"PRAGMA {prefix}journal_mode = {str(settings['journal_mode']).upper()};"
        yield f"PRAGMA {prefix}synchronous = {str(settings['synchronous']).upper()};"
    if settings["journal_mode"] == "wal":
        yield f"PRAGMA wal_autocheckpoint = {settings['wal_autocheckpoint_pages']};"
    if "statements" in changed:
        yield f"-- change {settings['statements']} rows in one transaction: BEGIN; ...; COMMIT;"
    is_off = _has_frames_when_closed(settings)
    if is_off or (settings["journal_mode"] == "wal" and "checkpoint_when_closed" in changed):
        yield "// C, whenever the database is opened; in Python from 3.12 on by db.setconfig()"
        yield f"sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, {is_off:d}, (int *)0);"


def _prefixes(schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Return each schema's name as SQL has it, and what stands before a PRAGMA's name for it."""
    quoted = [
        name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'
        for name in schemas
    ]
    return [(name, f"{name}." if len(schemas) > 1 else "") for name in quoted]


def _build_lines(settings: Mapping[str, Value], changed: Differences) -> Iterator[str]:
    flags = []
    if settings.get("sync_call") == "fdatasync":
        flags.append("-DHAVE_FDATASYNC=1")
    elif "sync_call" in changed:
        flags.append("-DHAVE_FDATASYNC=0")
    if settings.get("batch_atomic_write") == "on":
        flags.append("-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE")
    if flags:
        yield "# when SQLite is compiled"
        yield f"CFLAGS += {' '.join(flags)}"


def _disk_lines(settings: Mapping[str, Value], changed: Differences) -> Iterator[str]:
    filesystem = str(settings["filesystem"])
    mkfs, mount = str(settings["mkfs_options"]), str(settings["mount_options"])
    journal = str(settings["journal_device"])
    if not {"filesystem", "mkfs_options", "mount_options", "journal_device"} & changed.keys():
        return
    mkfs_fields = {"filesystem", "mkfs_options", "journal_device"} & changed.keys()
    yield "# as root; mkfs destroys what is on DEVICE" if mkfs_fields else "# as root"
    external = FILESYSTEMS[filesystem].external_journal
    if journal != NO_DEVICE and external:
        if mkfs_fields and external.prepare:
            yield external.prepare
        mkfs = external.mkfs_options.format(mkfs)
        mount = ",".join(filter(None, (mount, external.mount_option)))
    if mkfs_fields:
        yield " ".join(filter(None, (f"mkfs.{filesystem}", mkfs.strip(), "DEVICE")))
    options = f"-o {mount.lstrip(',')} " if mount else ""
    yield f"mount -t {filesystem} {options}DEVICE DIRECTORY"


def concessions(
    settings: Mapping[str, Value], changed: Differences, observation: Observation | None = None
) -> list[str]:
    """Return what the changes cost beside time, and what a power cut may do that it could not."""
    found = []
    present = {**settings, **{name: own for name, (own, _) in changed.items()}}
    observation = observation or Observation()
    own_risks = risks(present, observation=observation)
    for name, (own, new) in changed.items():
        match name:
            case "filesystem":
                found.append(f"the disk must be formatted: {own} is there now")
            case "mkfs_options" | "journal_device":
                found.append("the disk must be formatted")
            case "page_size_bytes":
                found.append("the database must be written anew (VACUUM)")
            case "locking_mode" if new == "exclusive":
                found.append("no other connection may open the database")
            case "journal_mode" if new == "wal":
                found.append(
                    "two more files beside the database; a checkpoint makes some commits slow"
                )
            case "wal_autocheckpoint_pages" if int(new) > int(own):
                size = text.size(int(new) * int(settings["page_size_bytes"]))
                found.append(
                    f"the WAL may grow to {size}, all of it read when a crash is recovered"
                )
            case "checkpoint_when_closed" if new == "off":
                found.append(
                    "a closed database has commits in its WAL: both files are copied or moved "
                    "together, the next opening reads the WAL, and where an app makes one commit "
                    "for each opening, it grows on, and each commit copies it all (docs/cure.md)"
                )
            case "sync_call" if new == "fdatasync":
                found.append("a SQLite that is built with fdatasync; a file's times may be old")
            case "vfs" if new == "wal":
                found.append("a library in the app's process; the WAL stays, of up to 4 MiB")
            case "vfs" if new == "redo":
                found += [
                    "a library in the app's process, for trial; a log of 4 MiB in each folder",
                    "SQLite without it refuses a database whose process died, until joj-redo-leave "
                    "or an app with the library has opened it",
                ]
            case "batch_atomic_write" if new == "on":
                found.append("a SQLite that is built with batch atomic writes")
            case "statements" if int(new) > int(own):
                found.append(f"{new} rows wait for one another and are kept or lost together")
    found += hazards.hazard_sentences(
        each for each in risks(settings, observation=observation) if each not in own_risks
    )
    return list(dict.fromkeys(found))
