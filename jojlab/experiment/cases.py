"""Expands fields and a matrix into cases: flat records. Explains what a filesystem cannot do."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path

from jojlab.experiment.fields import (
    ALL_SQLITE,
    ALLOCATOR_FIELDS,
    ALLOCATORS,
    BY_NAME,
    FIELDS,
    NAMED_FIELDS,
    PASSES,
    PROGRAMS,
    RAW_NAND_DEVICE,
    RAW_NAND_FILESYSTEMS,
    RECORDS,
    REPLAYS,
    SQL,
    SQLITE,
    Value,
)
from jojlab.experiment.filesystems import impossible_filesystem
from jojlab.experiment.machines import impossible_machine
from jojlab.foundation.errors import UseError

# What O_DIRECT transfers at least, on a device of 512-byte logical blocks (open(2), NOTES). Btrfs
# and F2FS take less, but through the page cache (Linux 6.1, check_direct_IO() of Btrfs,
# f2fs_should_use_dio()).
DIRECT_BYTES = {"ext4": 512, "xfs": 512, "btrfs": 4096, "nilfs2": 512, "f2fs": 4096}

# The sync modes that are a call after the write; the others are in the write, or nothing.
CALL_AFTER_WRITE = ("fsync", "fdatasync", "mmap_async", "mmap_sync", "sync_file_range")

# Most records that the agent keeps a shuffled order of (agent/src/workload/files/stream.rs).
MOST_SHUFFLED = 1 << 24

# Rows of a table to update: about 32 pages, so that random updates meet different ones.
UPDATE_ROWS = 1000


@dataclass(frozen=True)
class Case:
    """One point of the matrix: `settings` is the flat record; `skip` says why it cannot be run.

    `variant` is the variant it is of, where the experiment has them; `inputs` are the files that it
    names, by their fields.
    """

    case_id: str
    settings: dict[str, Value]
    skip: str = ""
    variant: str = ""
    inputs: Mapping[str, Path] = dataclass_field(default_factory=dict)


def expand(fixed: Mapping[str, Value], matrix: Mapping[str, Sequence[Value]]) -> list[Case]:
    """Return every combination of `matrix` over `fixed` and the defaults, in the given order.

    A field that a combination's workload does not have is left out of it; combinations that differ
    in nothing else are one case.
    """
    found: dict[tuple[tuple[str, Value], ...], dict[str, Value]] = {}
    for combination in itertools.product(*matrix.values()):
        settings = complete({**fixed, **dict(zip(matrix, combination, strict=True))})
        found.setdefault(tuple(settings.items()), settings)
    records = list(found.values())
    axes = [[name for name in matrix if name in record] for record in records]
    names = [
        "-".join(str(record[name]) for name in own) or "case"
        for record, own in zip(records, axes, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [
            ",".join(f"{name}={record[name]}" for name in own)
            for record, own in zip(records, axes, strict=True)
        ]
    return [
        Case(name, record, impossible(record)) for name, record in zip(names, records, strict=True)
    ]


def refuse_useless(names: Iterable[str], workloads: Sequence[Value], where: str) -> None:
    """Raise UseError for a named field that no workload asked for has."""
    for name in names:
        if not any(BY_NAME[name].applies(workload) for workload in workloads):
            raise UseError(
                f"{where}: {' and '.join(map(str, workloads))} has no field {name}",
                f"drop it; it is for {', '.join(BY_NAME[name].workloads)}",
            )


def complete(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return all fields that the workload has, in their order, defaults filled in.

    Those of NAMED_FIELDS that are named come last.
    """
    workload = settings.get("workload", BY_NAME["workload"].default)
    assert workload is not None
    fields = [field for field in FIELDS if field.applies(workload)]
    given = {field.name: settings.get(field.name, field.default) for field in fields}
    if given["filesystem"] in RAW_NAND_FILESYSTEMS and "device" not in settings:
        given["device"] = RAW_NAND_DEVICE
    if given.get("duration_ms") and "transactions" not in settings:
        given["transactions"] = 0
    record = {name: value for name, value in given.items() if value is not None}
    # initial_rows alone has a default that depends on other fields.
    whole = {name: record[name] if name in record else _default_rows(record) for name in given}
    named = {field.name: settings[field.name] for field in NAMED_FIELDS if field.name in settings}
    if any(field.name in named for field in ALLOCATOR_FIELDS):
        named = {**{field.name: ALLOCATORS[0] for field in ALLOCATOR_FIELDS}, **named}
    return whole | named


def _default_rows(settings: Mapping[str, Value]) -> int:
    """Return the initial rows of each table that a SQLite workload needs."""
    if settings["workload"] == "sqlite-delete":
        return 0 if settings["duration_ms"] else _deleted_rows(settings)
    if settings["workload"] == "sqlite-update" or settings["selects"]:
        return UPDATE_ROWS
    return 0


def _deleted_rows(settings: Mapping[str, Value]) -> int:
    """Return the rows that a table must have for its connections to delete from."""
    connections, tables = int(settings["connections"]), int(settings["tables"])
    counts = (int(settings["transactions"]), int(settings["warmup_transactions"]))
    # Counts are shared out evenly, and the first connection gets the rest of each.
    of_first = sum(-(-count // connections) for count in counts)
    rows = -(-of_first * int(settings["statements"]) // tables)
    return rows * (connections if settings["sharing"] == "shared" else 1)


def impossible(settings: Mapping[str, Value]) -> str:
    """Say why a case cannot be run as asked; empty when it can."""
    if found := impossible_machine(settings) or impossible_filesystem(settings):
        return found
    if settings["workload"] in PROGRAMS:
        return "" if settings["program"] else "workload program needs program = NAME"
    if settings["workload"] in REPLAYS:
        if bool(settings["recording"]) == bool(settings["script"]):
            return "replay needs recording = FOLDER or script = FILE, and not both"
        return ""
    if "transactions" in settings and (
        bool(settings["transactions"]) == bool(settings["duration_ms"])
    ):
        return "either transactions or duration_ms says how much is measured: name one of them"
    if settings["workload"] in SQL and not settings["scripts"]:
        return f"{settings['workload']} needs scripts = FOLDER"
    if settings["workload"] in ALL_SQLITE and (found := _impossible_options(settings)):
        return found
    if settings["workload"] in SQL:
        return _impossible_regime(settings, shared=False)  # which of them share, the scripts say
    if settings["workload"] in SQLITE:
        return _impossible_sqlite(settings)
    if settings["workload"] in PASSES:
        return _impossible_size(settings)
    if settings["workload"] in RECORDS:
        return _impossible_records(settings)
    return _impossible_metadata(settings) if settings["workload"] == "file-metadata" else ""


def _impossible_options(settings: Mapping[str, Value]) -> str:
    page_size = int(settings["page_size_bytes"])
    if page_size & (page_size - 1):
        return f"page_size_bytes = {page_size} is no power of two, as SQLite needs"
    if settings["batch_atomic_write"] == "on" and settings["filesystem"] != "f2fs":
        return f"{settings['filesystem']} has no batch atomic write; only f2fs has"
    if settings["autocheckpoint"] == "sqlite" and settings["checkpoint_mode"] != "passive":
        return f"SQLite's own checkpoints are passive, not {settings['checkpoint_mode']}"
    return ""


def _impossible_sqlite(settings: Mapping[str, Value]) -> str:
    shared = settings["sharing"] == "shared" and int(settings["connections"]) > 1
    if shared and settings["locking_mode"] == "exclusive":
        return "locking_mode = exclusive lets no other connection share the databases"
    if found := _impossible_regime(settings, shared=shared):
        return found
    rows = int(settings["initial_rows"])
    if settings["workload"] == "sqlite-delete" and settings["duration_ms"] and not rows:
        return "sqlite-delete needs initial_rows, as duration_ms does not say how many will go"
    if settings["workload"] == "sqlite-delete" and rows < _deleted_rows(settings):
        return (
            f"sqlite-delete deletes {_deleted_rows(settings)} rows of a table that has {rows}; "
            "initial_rows is too small"
        )
    if settings["workload"] == "sqlite-update" and rows == 0:
        return "sqlite-update needs initial_rows of 1 or more"
    if settings["selects"] and rows == 0:
        return "selects need initial_rows of 1 or more"
    return ""


def _impossible_regime(settings: Mapping[str, Value], *, shared: bool) -> str:
    if settings["regime"] == "reopened" and shared:
        return "regime = reopened needs sharing = own: a WAL stays while another connection is open"
    if settings["regime"] != "steady":
        return ""
    if settings["auto_vacuum"] == "full":
        return "auto_vacuum = full gives free pages back, so that regime = steady is never reached"
    wal = settings["journal_mode"] == "wal"
    if wal and settings["checkpoint_mode"] == "truncate":
        return "checkpoint_mode = truncate cuts the WAL off, so that it grows in regime = steady"
    grows = settings["workload"] in ("sqlite-insert", "sql") or (
        wal and not settings["wal_autocheckpoint_pages"]
    )
    if grows and settings.get("duration_ms"):
        return "regime = steady needs transactions, not duration_ms, to know how much to allocate"
    return ""


def _impossible_size(settings: Mapping[str, Value]) -> str:
    record_bytes, file_bytes = int(settings["record_bytes"]), int(settings["file_bytes"])
    if record_bytes > file_bytes:
        return f"record_bytes = {record_bytes} is more than file_bytes = {file_bytes}"
    return ""


def _impossible_records(settings: Mapping[str, Value]) -> str:
    if found := _impossible_size(settings):
        return found
    record_bytes, file_bytes = int(settings["record_bytes"]), int(settings["file_bytes"])
    threads = int(settings["threads"])
    counts = (int(settings["transactions"]), int(settings["warmup_transactions"]))
    operations = sum(-(-count // threads) for count in counts)
    if settings["overlap_percent"] and settings["access"] != "shuffled":
        return "overlap_percent is only for access = shuffled"
    if settings["access"] == "shuffled" and file_bytes // record_bytes > MOST_SHUFFLED:
        return f"access = shuffled has at most {MOST_SHUFFLED} records; raise record_bytes"
    if settings["access"] == "append":
        if settings["workload"] != "file-write":
            return "access = append is only for file-write"
        if settings["read_percent"]:
            return "access = append has nothing to read; read_percent must be 0"
        if operations * record_bytes > file_bytes:
            return (
                f"file_bytes = {file_bytes} is too small for {operations} appended records "
                f"of {record_bytes} bytes"
            )
    mode = str(settings.get("sync_mode", settings.get("read_mode")))
    every = int(settings.get("sync_every", 1))
    if every > 1 and mode not in CALL_AFTER_WRITE:
        return f"sync_mode = {mode} has no call to make every {every} operations"
    engine = settings["engine"]
    if engine != "calls" and mode.startswith("mmap"):
        return f"sync_mode = {mode} stores into memory, which engine = {engine} has no part in"
    if engine == "io_uring_polled" and not mode.startswith("o_direct"):
        return f"engine = {engine} needs O_DIRECT, which {mode} is not"
    return _impossible_direct(settings, record_bytes) if mode.startswith("o_direct") else ""


def _impossible_direct(settings: Mapping[str, Value], record_bytes: int) -> str:
    """Say where O_DIRECT fails, or goes through the page cache without a word."""
    filesystem = str(settings["filesystem"])
    if filesystem not in DIRECT_BYTES:
        return f"{filesystem} has no O_DIRECT; it would go through the page cache"
    unit = DIRECT_BYTES[filesystem]
    if record_bytes % unit:
        return f"O_DIRECT on {filesystem} needs record_bytes of a multiple of {unit}"
    if settings["workload"] != "file-write":
        return ""
    if filesystem == "nilfs2":
        return "nilfs2 has no O_DIRECT for writes; they would go through the page cache"
    if filesystem == "ext4" and "data=journal" in str(settings["mount_options"]).split(","):
        return "ext4 has no O_DIRECT with data=journal; writes would go through the page cache"
    return ""


def _impossible_metadata(settings: Mapping[str, Value]) -> str:
    syncs = "on" in (settings["sync_file"], settings["sync_directory"])
    if settings["metadata_operation"] == "stat" and syncs:
        return "stat changes nothing that could be synced"
    operation = settings["metadata_operation"]
    if settings["duration_ms"] and operation in ("unlink", "rename", "stat"):
        return f"{operation} needs its files made before: give transactions, not duration_ms"
    return ""


def refuse_alone(cases: Sequence[Case], where: str) -> None:
    """Raise UseError when nothing can be run: what cannot be done was not one point of several."""
    if cases and all(case.skip for case in cases):
        raise UseError(f"{where}: {cases[0].skip}", "change or drop the field, or name it")
