"""The fields of the workloads of SQLite."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

JOURNAL_MODES = ("delete", "truncate", "persist", "memory", "wal", "off")
REGIMES = ("fresh", "steady", "reopened")
SQLITE = ("sqlite-insert", "sqlite-update", "sqlite-delete")
# Of scripts: whose values are drawn, and that are played once as they were recorded.
SQL = ("sql", "sql-recorded")
ALL_SQLITE = (*SQLITE, *SQL)

SQLITE_FIELDS: tuple[Field, ...] = (
    Field("journal_mode", "PRAGMA journal_mode", "truncate", JOURNAL_MODES, workloads=ALL_SQLITE),
    Field(
        "synchronous",
        "PRAGMA synchronous",
        "full",
        ("off", "normal", "full", "extra"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "sync_call",
        "system call that SQLite uses to sync; fsync is its build default. fdatasync-of-size: "
        "fdatasync where a file's size or a directory has changed since its last sync, else the "
        "data alone, without inode and flush, as F2FS of Linux 3.8 made of fdatasync",
        "fsync",
        ("fsync", "fdatasync", "fdatasync-of-size"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "dropped_sync",
        "syncs that SQLite is made to leave out, as one with a fault would: those of the rollback "
        "journal, of the WAL, of the database, or of the directory of a journal. Power cuts show "
        "what each protects. truncated-journal: only those after a rollback journal was truncated, "
        "which SQLite made none of before 2014",
        "none",
        ("none", "journal", "wal", "database", "directory", "truncated-journal"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "batch_atomic_write",
        "whether SQLite may commit with F2FS's atomic write instead of a rollback journal",
        "off",
        ("off", "on"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "regime",
        "how far the files have grown when transactions are measured. fresh: new files, which "
        "grow; steady: allocated, so that nothing grows, and a WAL is overwritten in place; "
        "reopened: the connection is closed and opened around each burst, which deletes a WAL",
        "fresh",
        REGIMES,
        workloads=ALL_SQLITE,
    ),
    Field(
        "burst_transactions",
        "for regime = reopened: transactions of a connection from opening it to closing it",
        10,
        lowest=1,
        highest=1_000_000,
        workloads=ALL_SQLITE,
    ),
    Field(
        "initial_rows",
        "rows of each table before the first transaction; default: for delete, as many as it "
        "deletes; for update 1000; for insert 0, or 1000 if there are selects",
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
        workloads=ALL_SQLITE,
    ),
    Field(
        "wal_autocheckpoint_pages",
        "WAL pages after which a checkpoint is due; 0: only at the end. SQLite's default is 1000",
        1000,
        lowest=0,
        highest=1_000_000,
        workloads=ALL_SQLITE,
    ),
    Field(
        "autocheckpoint",
        "who runs a due checkpoint: the workload, as a separate step after the commit, or SQLite "
        "inside COMMIT, as in an app",
        "workload",
        ("workload", "sqlite"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "checkpoint_mode",
        "argument of PRAGMA wal_checkpoint; after restart and truncate the next commit starts the "
        "WAL from its beginning",
        "passive",
        ("passive", "full", "restart", "truncate"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "connections",
        "SQLite connections, one thread each; transactions are divided among them",
        1,
        lowest=1,
        highest=100,
        workloads=SQLITE,
    ),
    Field(
        "sharing",
        "own: each connection has its own databases; shared: all use the same ones, and each waits "
        "while another writes (busy_retries counts the waits)",
        "own",
        ("own", "shared"),
        workloads=SQLITE,
    ),
    Field(
        "databases",
        "attached databases, all changed in every transaction. With several, delete, truncate and "
        "persist use a super-journal; the other journal modes are not atomic across them",
        1,
        lowest=1,
        highest=10,
        workloads=SQLITE,
    ),
    Field(
        "tables",
        "tables per database; changes and selects take them in turn",
        1,
        lowest=1,
        highest=100,
        workloads=SQLITE,
    ),
    Field(
        "statements",
        "rows that a transaction changes in each database, one statement each",
        1,
        lowest=1,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "selects",
        "rows that a transaction selects in each database before its changes; drawn from the "
        "initial rows",
        0,
        lowest=0,
        highest=1000,
        workloads=SQLITE,
    ),
    Field(
        "interval_us",
        "idle time between two transactions, in us; throughput includes it",
        0,
        lowest=0,
        highest=60_000_000,
        workloads=SQLITE,
    ),
    Field(
        "locking_mode",
        "PRAGMA locking_mode; exclusive keeps the rollback journal between transactions and the "
        "WAL's index in memory",
        "normal",
        ("normal", "exclusive"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "secure_delete",
        "PRAGMA secure_delete: overwrite deleted rows with zeroes; fast: only where that costs no "
        "I/O",
        "off",
        ("off", "on", "fast"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "auto_vacuum",
        "PRAGMA auto_vacuum; incremental keeps the map of pages but frees nothing by itself",
        "none",
        ("none", "full", "incremental"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "temp_store",
        "PRAGMA temp_store; no operation of sqlite-insert, sqlite-update and sqlite-delete makes a "
        "temporary file, so it costs them nothing",
        "default",
        ("default", "file", "memory"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "attached_settings",
        "sqlite: attached databases keep SQLite's own settings, as where an app gives its PRAGMAs "
        "before it attaches them",
        "set",
        ("set", "sqlite"),
        workloads=ALL_SQLITE,
    ),
    Field(
        "scripts",
        "folder of SQL scripts: schema.sql, setup.sql, and transaction.sql, or for several "
        "connections transaction-NAME.sql (docs/own-sql.md); beneath the folder of the experiment "
        "file, or on the command line any path; its contents are part of the case",
        "",
        workloads=SQL,
        is_folder=True,
    ),
    Field(
        "think_time",
        "the pauses of a script (wait_us): none leaves them out, recorded keeps them",
        "none",
        ("none", "recorded"),
        workloads=SQL,
    ),
)
