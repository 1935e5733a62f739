"""The fields of the workloads of plain files."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

RECORDS = ("file-write", "file-read")
FILES = (*RECORDS, "file-metadata")
# Their length is that of the file: they have no number of transactions.
PASSES = ("file-passes",)
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
        "threads, each with its own file or directory; transactions are divided among them",
        1,
        lowest=1,
        highest=100,
        workloads=FILES,
    ),
    Field(
        "access",
        "sequential: in order, then from the start again; random; shuffled: each record once in "
        "random order before any repeats; append: after the end of the file (not for file-read); "
        "rewrite: always the first record",
        "random",
        ("sequential", "random", "shuffled", "append", "rewrite"),
        workloads=RECORDS,
    ),
    Field(
        "overlap_percent",
        "for access shuffled: percentage of operations on a record that was already used",
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
        workloads=(*RECORDS, *PASSES),
    ),
    Field(
        "file_bytes",
        "initial size of each thread's file, rounded down to whole records; for append, its "
        "largest size. The limit is the guest's memory, which holds the device",
        16 << 20,
        lowest=1,
        highest=4 << 30,
        workloads=(*RECORDS, *PASSES),
    ),
    Field(
        "sync_mode",
        "how a write reaches the device: by flags of open(2) (o_direct_sync: O_DIRECT|O_SYNC), by "
        "a sync call after it, by stores into mapped memory and msync(2), or by RWF_DSYNC of "
        "pwritev2(2). Not durable: none, o_direct, mmap, mmap_async and sync_file_range",
        "fsync",
        SYNC_MODES,
        workloads=("file-write",),
    ),
    Field(
        "sync_every",
        "operations per call of sync_mode; 1 if it has no call. Writes after the last call count "
        "as deferred. file-passes syncs by fsync, and also at the end of each pass that writes",
        1,
        lowest=1,
        highest=1_000_000,
        workloads=("file-write", *PASSES),
    ),
    Field(
        "read_percent",
        "percentage of operations that read a record instead, with the same access; exact in every "
        "hundred operations. The page cache is empty at first",
        0,
        lowest=0,
        highest=99,
        workloads=("file-write",),
    ),
    Field(
        "read_mode",
        "through the page cache (empty at first), or past it with O_DIRECT",
        "buffered",
        ("buffered", "o_direct"),
        workloads=("file-read",),
    ),
    Field(
        "engine",
        "how an operation reaches the kernel: plain system calls; io_uring, one operation at a "
        "time; or io_uring that polls the device for completions, with O_DIRECT and system calls "
        "for syncs",
        "calls",
        ("calls", "io_uring", "io_uring_polled"),
        workloads=RECORDS,
    ),
    Field(
        "metadata_operation",
        "metadata operation on one name; the files are empty, and the kernel's caches are empty "
        "before stat",
        "create",
        ("create", "unlink", "rename", "mkdir", "stat"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_file",
        "fsync the file or directory that the operation changed",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
    Field(
        "sync_directory",
        "fsync the parent directory",
        "off",
        ("off", "on"),
        workloads=("file-metadata",),
    ),
)
