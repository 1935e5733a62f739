"""The fields of the workloads of plain files."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

RECORDS = ("file-write", "file-read")
FILES = (*RECORDS, "file-metadata")
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
)

FILE_FIELDS: tuple[Field, ...] = (
    Field(
        "threads",
        "threads, each on a file or directory of its own; transactions are shared out among them",
        1,
        lowest=1,
        highest=100,
        workloads=FILES,
    ),
    Field(
        "access",
        "records in order and round again, at random, shuffled (each once in random order before "
        "any comes again), after the file's end (which file-read has not), or the first one again "
        "and again",
        "random",
        ("sequential", "random", "shuffled", "append", "rewrite"),
        workloads=RECORDS,
    ),
    Field(
        "overlap_percent",
        "of access shuffled, the share of operations that are on a record that came before",
        0,
        lowest=0,
        highest=100,
        workloads=RECORDS,
    ),
    Field(
        "record_bytes",
        "bytes of one write or read",
        4096,
        lowest=1,
        highest=16 << 20,
        workloads=RECORDS,
    ),
    Field(
        "file_bytes",
        "bytes of each thread's file before the first operation, cut to whole records; for append "
        "the most it may grow to. The guest's memory holds the device, hence the limit",
        16 << 20,
        lowest=1,
        highest=4 << 30,
        workloads=RECORDS,
    ),
    Field(
        "sync_mode",
        "how a write reaches the device: by flags of open(2) (o_direct_sync: O_DIRECT|O_SYNC), a "
        "call after it, stores into mapped memory and msync(2), or RWF_DSYNC of pwritev2(2); none, "
        "o_direct, mmap, mmap_async and sync_file_range do not make it durable",
        "fsync",
        SYNC_MODES,
        workloads=("file-write",),
    ),
    Field(
        "sync_every",
        "operations for each call of sync_mode; 1 where it has none. What the last call did not "
        "reach is deferred",
        1,
        lowest=1,
        highest=1_000_000,
        workloads=("file-write",),
    ),
    Field(
        "read_percent",
        "share of operations that read a record instead, by the same access; exact in every "
        "hundred. The page cache is empty at first",
        0,
        lowest=0,
        highest=99,
        workloads=("file-write",),
    ),
    Field(
        "read_mode",
        "through the page cache, empty at first, or past it",
        "buffered",
        ("buffered", "o_direct"),
        workloads=("file-read",),
    ),
    Field(
        "engine",
        "how an operation reaches the kernel: plain calls, an io_uring with one operation in it at "
        "a time, or one that polls the device for completions, with O_DIRECT and calls for syncs",
        "calls",
        ("calls", "io_uring", "io_uring_polled"),
        workloads=RECORDS,
    ),
    Field(
        "metadata_operation",
        "what is done to one name; the files are empty, and so are the kernel's caches before stat",
        "create",
        ("create", "unlink", "rename", "mkdir", "stat"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_file",
        "fsync of the file or directory that the operation was about",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_directory",
        "fsync of the directory that its name is in",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
)
