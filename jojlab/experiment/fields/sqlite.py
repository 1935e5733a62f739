"""The fields of the workloads of SQLite."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

JOURNAL_MODES = ("delete", "truncate", "persist", "memory", "wal", "off")
SQLITE = ("sqlite-insert", "sqlite-update", "sqlite-delete")

SQLITE_FIELDS: tuple[Field, ...] = (
    Field("journal_mode", "PRAGMA journal_mode", "truncate", JOURNAL_MODES, workloads=SQLITE),
    Field(
        "synchronous",
        "PRAGMA synchronous",
        "full",
        ("off", "normal", "full", "extra"),
        workloads=SQLITE,
    ),
    Field(
        "sync_call",
        "system call behind SQLite's syncs; SQLite calls fsync unless built otherwise",
        "fsync",
        ("fsync", "fdatasync"),
        workloads=SQLITE,
    ),
    Field(
        "batch_atomic_write",
        "whether SQLite may commit by F2FS's atomic write instead of a rollback journal",
        "off",
        ("off", "on"),
        workloads=SQLITE,
    ),
    Field(
        "initial_rows",
        "rows of each table before the first transaction; by default as many as delete deletes, "
        "1000 for update, 0 for insert, or 1000 if there are selects",
        None,
        lowest=0,
        highest=10_000_000,
        workloads=SQLITE,
    ),
    Field(
        "value_bytes",
        "bytes of a row's value; ATC'13 inserted 100",
        100,
        lowest=0,
        highest=100_000,
        workloads=SQLITE,
    ),
    Field(
        "key_order",
        "order of the keys",
        "sequential",
        ("sequential", "random"),
        workloads=SQLITE,
    ),
    Field(
        "page_size_bytes",
        "PRAGMA page_size, a power of two",
        4096,
        lowest=512,
        highest=65536,
        workloads=SQLITE,
    ),
    Field(
        "wal_autocheckpoint_pages",
        "WAL pages that make a checkpoint due; 0: only at the end. SQLite's default is 1000",
        1000,
        lowest=0,
        highest=1_000_000,
        workloads=SQLITE,
    ),
    Field(
        "autocheckpoint",
        "who makes the checkpoint that is due: the workload, as a step of its own after the "
        "commit, or SQLite inside COMMIT, as it does in an app",
        "workload",
        ("workload", "sqlite"),
        workloads=SQLITE,
    ),
    Field(
        "checkpoint_mode",
        "PRAGMA wal_checkpoint's argument; restart and truncate make the next commit begin the WAL "
        "anew",
        "passive",
        ("passive", "full", "restart", "truncate"),
        workloads=SQLITE,
    ),
    Field(
        "connections",
        "connections to SQLite, a thread each; transactions are shared out among them",
        1,
        lowest=1,
        highest=100,
        workloads=SQLITE,
    ),
    Field(
        "sharing",
        "whether each connection has databases of its own, or all have the same; then each waits "
        "while another writes, which busy_retries counts",
        "own",
        ("own", "shared"),
        workloads=SQLITE,
    ),
    Field(
        "databases",
        "databases attached, each changed in every transaction; over several, delete, truncate and "
        "persist join them by a super-journal, and the others are not atomic across them",
        1,
        lowest=1,
        highest=10,
        workloads=SQLITE,
    ),
    Field(
        "tables",
        "tables of each database; changes and selects go round them",
        1,
        lowest=1,
        highest=100,
        workloads=SQLITE,
    ),
    Field(
        "statements",
        "rows that a transaction changes in each database, a statement each",
        1,
        lowest=1,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "selects",
        "rows that a transaction looks up in each database before it changes any; drawn from the "
        "initial rows",
        0,
        lowest=0,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "interval_us",
        "idle time between two transactions in us; throughput counts it",
        0,
        lowest=0,
        highest=60_000_000,
        workloads=SQLITE,
    ),
    Field(
        "locking_mode",
        "PRAGMA locking_mode; exclusive keeps the rollback journal between transactions, and the "
        "WAL's index in memory",
        "normal",
        ("normal", "exclusive"),
        workloads=SQLITE,
    ),
    Field(
        "secure_delete",
        "PRAGMA secure_delete: zeroes over deleted rows; fast only where that costs no I/O",
        "off",
        ("off", "on", "fast"),
        workloads=SQLITE,
    ),
    Field(
        "auto_vacuum",
        "PRAGMA auto_vacuum; incremental keeps the pages' map and frees nothing by itself",
        "none",
        ("none", "full", "incremental"),
        workloads=SQLITE,
    ),
    Field(
        "temp_store",
        "PRAGMA temp_store; no operation here makes a temporary file, so it costs nothing",
        "default",
        ("default", "file", "memory"),
        workloads=SQLITE,
    ),
)
