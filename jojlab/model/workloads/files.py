"""The workloads of plain files: records that are written or read, and operations on names."""

from __future__ import annotations

from jojlab.model.field import Changes, Field, Settings
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Harm
from jojlab.model.workload import DRAWN, Workload

RANK = 2
WRITE, READ, METADATA, PASSES = "file-write", "file-read", "file-metadata", "file-passes"
# Groups of fields that several of them have.
THREADS, RECORDS, RECORD_FILES, SYNCED = "threads", "records", "record files", "synced records"

SYNC_MODES = (
    "none",
    "o_sync",
    "o_dsync",
    "fsync",
    "fdatasync",
    "o_direct",
    "o_direct_sync",
    "mmap",
    "mmap_async",
    "mmap_sync",
    "sync_file_range",
    "rwf_dsync",
    "rwf_atomic",
)

# The sync modes after which a write that returned may still be in a cache, by the manual pages of
# open, msync and sync_file_range.
LAZY_SYNC_MODES = ("none", "o_direct", "mmap", "mmap_async", "sync_file_range")
# The sync modes that are a call after the write; the others are in the write, or nothing.
CALL_AFTER_WRITE = ("fsync", "fdatasync", "mmap_async", "mmap_sync", "sync_file_range")

# Most records that the agent keeps a shuffled order of (agent/src/workload/files/stream.rs).
MOST_SHUFFLED = 1 << 24

FIELDS: tuple[Field, ...] = (
    Field(
        "threads",
        "threads, each with its own file or directory; transactions are divided among them",
        1,
        limits=(1, 100),
        group=THREADS,
    ),
    Field(
        "access",
        "sequential: in order, then from the start again; random; shuffled: each record once in "
        "random order before any repeats; append: after the end of the file (not for file-read); "
        "rewrite: always the first record",
        "random",
        ("sequential", "random", "shuffled", "append", "rewrite"),
        group=RECORDS,
    ),
    Field(
        "overlap_percent",
        "for access shuffled: percentage of operations on a record that was already used",
        0,
        limits=(0, 100),
        group=RECORDS,
    ),
    Field(
        "record_bytes", "bytes of one write or read", 4096, limits=(1, 16 << 20), group=RECORD_FILES
    ),
    Field(
        "file_bytes",
        "initial size of each thread's file, rounded down to whole records; for append, its "
        "largest size. The limit is the guest's memory, which holds the device",
        16 << 20,
        limits=(1, 4 << 30),
        group=RECORD_FILES,
    ),
    Field(
        "sync_mode",
        "how a write reaches the device: by flags of open(2) (o_direct_sync: O_DIRECT|O_SYNC), by "
        "a sync call after it, by stores into mapped memory and msync(2), or by RWF_DSYNC of "
        "pwritev2(2); rwf_atomic: by RWF_ATOMIC, RWF_DSYNC and O_DIRECT, a write of which a power "
        "cut leaves all or nothing, on ext4 and XFS of Linux 6.13 on. Not durable: none, o_direct, "
        "mmap, mmap_async and sync_file_range",
        "fsync",
        SYNC_MODES,
        group=WRITE,
        changes=Changes.MEANS,
        names_itself=True,
    ),
    Field(
        "sync_every",
        "operations per call of sync_mode; 1 if it has no call. Writes after the last call count "
        "as deferred. file-passes syncs by fsync, and also at the end of each pass that writes",
        1,
        limits=(1, 1_000_000),
        group=SYNCED,
    ),
    Field(
        "read_percent",
        "percentage of operations that read a record instead, with the same access; exact in every "
        "hundred operations. The page cache is empty at first",
        0,
        limits=(0, 99),
        group=WRITE,
    ),
    Field(
        "read_mode",
        "through the page cache (empty at first), or past it with O_DIRECT",
        "buffered",
        ("buffered", "o_direct"),
        group=READ,
        names_itself=True,
    ),
    Field(
        "engine",
        "how an operation reaches the kernel: plain system calls; io_uring, one operation at a "
        "time; or io_uring that polls the device for completions, with O_DIRECT and system calls "
        "for syncs",
        "calls",
        ("calls", "io_uring", "io_uring_polled"),
        group=RECORDS,
        changes=Changes.MEANS,
    ),
    Field(
        "metadata_operation",
        "metadata operation on one name; the files are empty, and the kernel's caches are empty "
        "before stat",
        "create",
        ("create", "unlink", "rename", "mkdir", "stat"),
        group=METADATA,
        names_itself=True,
    ),
    Field(
        "sync_file",
        "fsync the file or directory that the operation changed",
        "off",
        ("off", "on"),
        group=METADATA,
    ),
    Field("sync_directory", "fsync the parent directory", "off", ("off", "on"), group=METADATA),
)


def _size_refusal(settings: Settings) -> str:
    record_bytes, file_bytes = int(settings["record_bytes"]), int(settings["file_bytes"])
    if record_bytes > file_bytes:
        return f"record_bytes = {record_bytes} is more than file_bytes = {file_bytes}"
    return ""


def _record_refusal(settings: Settings) -> str:
    if found := _size_refusal(settings):
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
        if settings["workload"] != WRITE:
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
    if mode == "rwf_atomic" and record_bytes & (record_bytes - 1):
        return f"sync_mode = {mode} needs record_bytes of a power of two"
    is_direct = mode.startswith("o_direct") or mode == "rwf_atomic"
    return _direct_refusal(settings, record_bytes) if is_direct else ""


def _direct_refusal(settings: Settings, record_bytes: int) -> str:
    """Say where O_DIRECT fails, or goes through the page cache without a word."""
    filesystem = FILESYSTEMS[str(settings["filesystem"])]
    unit = filesystem.direct_bytes
    if not unit:
        return f"{filesystem.name} has no O_DIRECT; it would go through the page cache"
    if record_bytes % unit:
        return f"O_DIRECT on {filesystem.name} needs record_bytes of a multiple of {unit}"
    return filesystem.direct_write_refusal(settings) if settings["workload"] == WRITE else ""


def _metadata_refusal(settings: Settings) -> str:
    syncs = "on" in (settings["sync_file"], settings["sync_directory"])
    if settings["metadata_operation"] == "stat" and syncs:
        return "stat changes nothing that could be synced"
    operation = settings["metadata_operation"]
    if settings["duration_ms"] and operation in ("unlink", "rename", "stat"):
        return f"{operation} needs its files made before: give transactions, not duration_ms"
    return ""


def _bytes_of_threads(settings: Settings) -> int:
    return int(settings["file_bytes"]) * int(settings["threads"])


def _too_large(settings: Settings, capacity_bytes: int, _needed_bytes: int) -> str:
    threads = int(settings.get("threads", 1))
    each = f" for each of {threads} threads" if threads > 1 else ""
    return (
        f"file_bytes = {settings['file_bytes']}{each} is more than three quarters of "
        f"{settings['device']}, which has {capacity_bytes} bytes"
    )


def _nothing_to_lose(settings: Settings) -> str:
    return f"workload {settings['workload']}: nothing is changed that could be lost"


def _is_stat(settings: Settings) -> bool:
    return settings["metadata_operation"] == "stat"


WORKLOADS = (
    Workload(
        name=WRITE,
        harm=Harm.WRITES,
        groups=(DRAWN, THREADS, RECORDS, RECORD_FILES, SYNCED),
        bench="file",
        mobibench_flags=("-a 0", "-a 1", "-a 4"),
        refusal=_record_refusal,
        files_bytes=_bytes_of_threads,
        too_large=_too_large,
    ),
    Workload(
        name=READ,
        harm=Harm.WRITES,
        groups=(DRAWN, THREADS, RECORDS, RECORD_FILES),
        bench="file",
        mobibench_flags=("-a 2", "-a 3"),
        refusal=_record_refusal,
        uncuttable=_nothing_to_lose,
        files_bytes=_bytes_of_threads,
        too_large=_too_large,
        reads_only=lambda _: True,
    ),
    Workload(
        name=METADATA,
        harm=Harm.NAMES,
        groups=(DRAWN, THREADS),
        bench="file",
        refusal=_metadata_refusal,
        uncuttable=lambda settings: _nothing_to_lose(settings) if _is_stat(settings) else "",
        reads_only=_is_stat,
    ),
    # Its length is that of the file: it has no number of transactions.
    Workload(
        name=PASSES,
        harm=Harm.WRITES,
        groups=(RECORD_FILES, SYNCED),
        refusal=_size_refusal,
        uncuttable=lambda _: (
            "workload file-passes: nobody looks for what a power cut leaves; use file-write"
        ),
        files_bytes=lambda settings: int(settings["file_bytes"]),
        too_large=_too_large,
    ),
)
