"""The workloads of SQLite: rows that are inserted, updated or deleted, and scripts of SQL.

The bytes of a database are computed from its file format (sqlite.org/fileformat2.html, sections 1.6
and 2.1); interior pages, a few per cent, are left out.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial

from jojlab.model.architecture import X86_64
from jojlab.model.field import Changes, Field, FieldKind, Settings
from jojlab.model.filesystem import MIB
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Harm
from jojlab.model.workload import DRAWN, FAULTS, Workload

RANK = 1
INSERT, UPDATE, DELETE = "sqlite-insert", "sqlite-update", "sqlite-delete"
# Scripts whose values are drawn, and scripts that are played once as they were recorded.
SQL, SQL_RECORDED = "sql", "sql-recorded"
# Groups of fields: of every workload of SQLite, of those of rows, and of those of scripts.
SQLITE, ROWS, SCRIPTS = "sqlite", "rows", "scripts"

ROLLBACK_MODES = ("delete", "truncate", "persist")
JOURNAL_MODES = (*ROLLBACK_MODES, "memory", "wal", "off")
REGIMES = ("fresh", "steady", "reopened")

# Rows of a table to update: about 32 pages, so that random updates meet different ones.
UPDATE_ROWS = 1000
# Rows that a database begins with go into its WAL in portions of this many bytes of values
# (agent/src/workload/sqlite/mod.rs).
_WAL_PORTION_BYTES = 64 * MIB

# The SQLite that the agent comes with.
BUNDLED = "bundled"

_setting = partial(Field, group=SQLITE, changes=Changes.MEANS)
_row_field = partial(Field, group=ROWS)
FIELDS: tuple[Field, ...] = (
    Field(
        "sqlite",
        "the SQLite that runs: bundled, that of the agent; or a folder with the amalgamation of "
        "another, sqlite3.c and sqlite3.h, and its compile-options.txt if it has one "
        "(docs/own-sql.md)",
        BUNDLED,
        kind=FieldKind.SOURCES,
        group=SQLITE,
        changes=Changes.TARGET,
        built_in=(BUNDLED,),
    ),
    _setting("journal_mode", "PRAGMA journal_mode", "truncate", JOURNAL_MODES, names_itself=True),
    _setting("synchronous", "PRAGMA synchronous", "full", ("off", "normal", "full", "extra")),
    _setting(
        "sync_call",
        "system call that SQLite uses to sync; fsync is its build default. fdatasync-of-size: "
        "fdatasync where a file's size or a directory has changed since its last sync, else the "
        "data alone, without inode and flush, as F2FS of Linux 3.8 made of fdatasync",
        "fsync",
        ("fsync", "fdatasync", "fdatasync-of-size"),
        names_itself=True,
    ),
    _setting(
        "dropped_sync",
        "syncs that SQLite is made to leave out, as one with a fault would: those of the rollback "
        "journal (of the redo log, with vfs = redo), of the WAL, of the database, or of the "
        "directory of a journal. Power cuts show what each protects. truncated-journal: only those "
        "after a rollback journal was truncated, which SQLite made none of until 2014",
        "none",
        ("none", "journal", "wal", "database", "directory", "truncated-journal"),
    ),
    _setting(
        "batch_atomic_write",
        "whether SQLite may commit with F2FS's atomic write instead of a rollback journal",
        "off",
        ("off", "on"),
    ),
    Field(
        "regime",
        "how far the files have grown when transactions are measured. fresh: new files, which "
        "grow; steady: allocated, so that nothing grows, and a WAL is overwritten in place; "
        "reopened: the connection is closed and opened around each burst, which deletes a WAL",
        "fresh",
        REGIMES,
        group=SQLITE,
        names_itself=True,
    ),
    Field(
        "burst_transactions",
        "for regime = reopened: transactions of a connection from opening it to closing it",
        10,
        limits=(1, 1_000_000),
        group=SQLITE,
    ),
    _row_field(
        "initial_rows",
        "rows of each table before the first transaction; default: for delete, as many as it "
        "deletes; for update 1000; for insert 0, or 1000 if there are selects",
        None,
        limits=(0, 10_000_000),
    ),
    _row_field(
        "value_bytes", "bytes of a row's value; ATC'13 inserted 100", 100, limits=(0, 100_000)
    ),
    _row_field("key_order", "order of the keys", "sequential", ("sequential", "random")),
    _setting("page_size_bytes", "PRAGMA page_size, a power of two", 4096, limits=(512, 65536)),
    _setting(
        "wal_autocheckpoint_pages",
        "WAL pages after which a checkpoint is due; 0: only at the end. SQLite's default is 1000",
        1000,
        limits=(0, 1_000_000),
    ),
    _setting(
        "autocheckpoint",
        "who runs a due checkpoint: the workload, as a separate step after the commit, or SQLite "
        "inside COMMIT, as in an app",
        "workload",
        ("workload", "sqlite"),
    ),
    _setting(
        "checkpoint_mode",
        "argument of PRAGMA wal_checkpoint; after restart and truncate the next commit starts the "
        "WAL from its beginning",
        "passive",
        ("passive", "full", "restart", "truncate"),
    ),
    _row_field(
        "connections",
        "SQLite connections, one thread each; transactions are divided among them",
        1,
        limits=(1, 100),
    ),
    _row_field(
        "sharing",
        "own: each connection has its own databases; shared: all use the same ones, and each waits "
        "while another writes (busy_retries counts the waits)",
        "own",
        ("own", "shared"),
    ),
    _row_field(
        "databases",
        "attached databases, all changed in every transaction. With several, delete, truncate and "
        "persist use a super-journal; the other journal modes are not atomic across them",
        1,
        limits=(1, 10),
    ),
    _row_field(
        "database_folders",
        "folders in which the databases lie, in turn; with vfs = redo each has a log",
        1,
        limits=(1, 10),
    ),
    _row_field(
        "tables", "tables per database; changes and selects take them in turn", 1, limits=(1, 100)
    ),
    _row_field(
        "statements",
        "rows that a transaction changes in each database, one statement each",
        1,
        limits=(1, 1000),
    ),
    _row_field(
        "selects",
        "rows that a transaction selects in each database before its changes; drawn from the "
        "initial rows",
        0,
        limits=(0, 1000),
    ),
    _row_field(
        "interval_us",
        "idle time between two transactions, in us; throughput includes it",
        0,
        limits=(0, 60_000_000),
    ),
    _row_field(
        "second_name",
        "on: every second transaction of a connection finds its last database with a second name, "
        "a hard link, as `cp -l` leaves one; with vfs = redo it commits in SQLite's own way",
        "off",
        ("off", "on"),
    ),
    _setting(
        "locking_mode",
        "PRAGMA locking_mode; exclusive keeps the rollback journal between transactions and the "
        "WAL's index in memory",
        "normal",
        ("normal", "exclusive"),
    ),
    _setting(
        "secure_delete",
        "PRAGMA secure_delete: overwrite deleted rows with zeroes; fast: only where that costs no "
        "I/O",
        "off",
        ("off", "on", "fast"),
    ),
    _setting(
        "auto_vacuum",
        "PRAGMA auto_vacuum; incremental keeps the map of pages but frees nothing by itself",
        "none",
        ("none", "full", "incremental"),
    ),
    _setting(
        "temp_store",
        "PRAGMA temp_store; no operation of sqlite-insert, sqlite-update and sqlite-delete makes a "
        "temporary file, so it costs them nothing",
        "default",
        ("default", "file", "memory"),
    ),
    Field(
        "attached_settings",
        "sqlite: attached databases keep SQLite's own settings, as where an app gives its PRAGMAs "
        "before it attaches them",
        "set",
        ("set", "sqlite"),
        group=SQLITE,
    ),
    _setting(
        "database_prefill_bytes",
        "SQLITE_FCNTL_CHUNK_SIZE: SQLite gives a database's file a multiple of so many bytes "
        "whenever it makes it longer, by zeros; the first of them before the first transaction",
        0,
        limits=(0, 1 << 30),
    ),
    _setting(
        "wal_kept",
        "on: SQLITE_FCNTL_PERSIST_WAL, by which SQLite deletes no WAL when a database is closed",
        "off",
        ("off", "on"),
    ),
    _setting(
        "wal_prefill_bytes",
        "bytes that a WAL has at least when its database was opened: zeros are written behind what "
        "it has, and synced, before the first transaction",
        0,
        limits=(0, 1 << 30),
    ),
    _setting(
        "checkpoint_when_closed",
        "off: SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, by which SQLite leaves the frames in the WAL when "
        "the last connection of a database is closed, as a process does that ends without it",
        "on",
        ("on", "off"),
    ),
    _setting(
        "vfs",
        "what stands between SQLite and its own VFS. wal: joj_wal, which fills a WAL with zeros as "
        "it grows, keeps it when the database is closed, and syncs it by fdatasync on ext4 and "
        "XFS. redo: joj_redo, for trial only, which keeps the journals of delete, truncate and "
        "persist in memory and commits by one redo log of the folder, on ext4, XFS, F2FS and "
        "Btrfs. What they are not for they leave as it is (docs/cure.md)",
        "none",
        ("none", "wal", "redo"),
    ),
    Field(
        "scripts",
        "folder of SQL scripts: schema.sql, setup.sql, and transaction.sql, or for several "
        "connections transaction-NAME.sql (docs/own-sql.md); beneath the folder of the experiment "
        "file, or on the command line any path; its contents are part of the case",
        "",
        group=SCRIPTS,
        kind=FieldKind.FOLDER,
    ),
    Field(
        "think_time",
        "the pauses of a script (wait_us): none leaves them out, recorded keeps them",
        "none",
        ("none", "recorded"),
        group=SCRIPTS,
    ),
)


def _settings_refusal(settings: Settings) -> str:
    page_size = int(settings["page_size_bytes"])
    if page_size & (page_size - 1):
        return f"page_size_bytes = {page_size} is no power of two, as SQLite needs"
    if settings["batch_atomic_write"] == "on" and not (
        FILESYSTEMS[str(settings["filesystem"])].has_batch_atomic_write
    ):
        return _no_batches(settings)
    if settings["sqlite"] != BUNDLED and settings["machine"] != X86_64.name:
        return f"sqlite: an agent with another SQLite is built for {X86_64.name} alone"
    if settings["vfs"] == "redo" and settings["database_prefill_bytes"]:
        return (
            "database_prefill_bytes needs vfs = none or wal: with redo a file has the size that "
            "the log says"
        )
    if settings["autocheckpoint"] == "sqlite" and settings["checkpoint_mode"] != "passive":
        return f"SQLite's own checkpoints are passive, not {settings['checkpoint_mode']}"
    if (settings["failed_sync"] or settings["free_kib"]) and settings["regime"] == "reopened":
        return (
            "failed_sync and free_kib need regime = fresh or steady: who cannot open the database "
            "again has no next transaction"
        )
    return ""


def _no_batches(settings: Settings) -> str:
    having = [each.name for each in FILESYSTEMS.values() if each.has_batch_atomic_write]
    return (
        f"{settings['filesystem']} has no batch atomic write; only {' and '.join(having)} "
        f"{'have' if len(having) > 1 else 'has'}"
    )


def _rows_refusal(settings: Settings) -> str:
    if found := _settings_refusal(settings):
        return found
    shared = settings["sharing"] == "shared" and int(settings["connections"]) > 1
    if shared and settings["locking_mode"] == "exclusive":
        return "locking_mode = exclusive lets no other connection share the databases"
    if shared and (settings["failed_sync"] or settings["free_kib"]):
        return (
            "failed_sync and free_kib need sharing = own: of transactions that fail beside others "
            "nobody could say which are there"
        )
    if found := _regime_refusal(settings, shared=shared):
        return found
    rows = int(settings["initial_rows"])
    if settings["workload"] == DELETE and settings["duration_ms"] and not rows:
        return "sqlite-delete needs initial_rows, as duration_ms does not say how many will go"
    if settings["workload"] == DELETE and rows < _deleted_rows(settings):
        return (
            f"sqlite-delete deletes {_deleted_rows(settings)} rows of a table that has {rows}; "
            "initial_rows is too small"
        )
    if settings["workload"] == UPDATE and rows == 0:
        return "sqlite-update needs initial_rows of 1 or more"
    if settings["selects"] and rows == 0:
        return "selects need initial_rows of 1 or more"
    return ""


def _script_refusal(settings: Settings) -> str:
    # Which connections share a database, the scripts say.
    return _settings_refusal(settings) or _regime_refusal(settings, shared=False)


def _regime_refusal(settings: Settings, *, shared: bool) -> str:
    if settings["regime"] == "reopened" and shared:
        return "regime = reopened needs sharing = own: a WAL stays while another connection is open"
    if settings["regime"] != "steady":
        return ""
    if settings["auto_vacuum"] == "full":
        return "auto_vacuum = full gives free pages back, so that regime = steady is never reached"
    wal = settings["journal_mode"] == "wal"
    if wal and settings["checkpoint_mode"] == "truncate":
        return "checkpoint_mode = truncate cuts the WAL off, so that it grows in regime = steady"
    grows = settings["workload"] in (INSERT, SQL) or (
        wal and not settings["wal_autocheckpoint_pages"]
    )
    if grows and settings.get("duration_ms"):
        return "regime = steady needs transactions, not duration_ms, to know how much to allocate"
    return ""


def _default_rows(settings: Settings) -> int:
    """Return the initial rows of each table that a SQLite workload needs."""
    if settings["workload"] == DELETE:
        return 0 if settings["duration_ms"] else _deleted_rows(settings)
    if settings["workload"] == UPDATE or settings["selects"]:
        return UPDATE_ROWS
    return 0


def _deleted_rows(settings: Settings) -> int:
    """Return the rows that a table must have for its connections to delete from."""
    connections, tables = int(settings["connections"]), int(settings["tables"])
    counts = (int(settings["transactions"]), int(settings["warmup_transactions"]))
    # Counts are shared out evenly, and the first connection gets the rest of each.
    of_first = sum(-(-count // connections) for count in counts)
    rows = -(-of_first * int(settings["statements"]) // tables)
    return rows * (connections if settings["sharing"] == "shared" else 1)


def table_bytes(rows: int, value_bytes: int, page_bytes: int) -> int:
    """Return the bytes of a table's leaf and overflow pages."""
    # A row is its header (its own length, the types of key and text) and the text.
    payload = 2 + _varint_bytes(13 + 2 * value_bytes) + value_bytes
    local, overflow_pages, pointer_bytes = payload, 0, 0
    if payload > page_bytes - 35:
        least = (page_bytes - 12) * 32 // 255 - 23
        local = least + (payload - least) % (page_bytes - 4)
        local = local if local <= page_bytes - 35 else least
        overflow_pages, pointer_bytes = -(-(payload - local) // (page_bytes - 4)), 4
    cell = 2 + _varint_bytes(payload) + _varint_bytes(rows) + local + pointer_bytes
    in_a_page = max(1, (page_bytes - 8) // cell)
    return (-(-rows // in_a_page) + rows * overflow_pages) * page_bytes


def _varint_bytes(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _files_bytes(settings: Settings) -> int:
    return sum(_databases_bytes(settings, int(settings["initial_rows"])))


def _databases_bytes(settings: Settings, initial_rows: int) -> tuple[int, int]:
    """Return the bytes of all databases, and of their WALs when the databases are made."""
    connections, tables = int(settings["connections"]), int(settings["tables"])
    shared = settings["sharing"] == "shared"
    transactions = int(settings["transactions"]) + int(settings["warmup_transactions"])
    inserted = transactions
    if settings["workload"] != INSERT:
        inserted = 0
    elif not shared:
        inserted = -(-inserted // connections)
    rows = initial_rows + -(-inserted * int(settings["statements"]) // tables)
    value_bytes, page_bytes = int(settings["value_bytes"]), int(settings["page_size_bytes"])
    database = table_bytes(rows, value_bytes, page_bytes) * tables
    wal = 0
    if settings["journal_mode"] == "wal":
        wal = min(database, _WAL_PORTION_BYTES * 5 // 4)
        wal = max(wal, int(settings["wal_prefill_bytes"]))
    if chunk := int(settings["database_prefill_bytes"]):
        database = -(-database // chunk) * chunk
    if settings["regime"] == "steady":
        allocated = _allocated_bytes(settings, transactions)
        database += allocated
        wal += allocated
    files = int(settings["databases"]) * (1 if shared else connections)
    return database * files, wal * files


def _allocated_bytes(settings: Settings, transactions: int) -> int:
    """Return what a steady workload allocates of a database, and again of its WAL or journal.

    As the agent does it (pages_to_allocate() in agent/src/workload/sqlite/settings.rs), at most.
    """
    page_bytes, value_bytes = int(settings["page_size_bytes"]), int(settings["value_bytes"])
    of_a_row = 6 + -(-(value_bytes + 16) // (page_bytes - 4))
    of_a_transaction = int(settings["statements"]) * of_a_row + 2
    pages = transactions * of_a_transaction + int(settings["tables"])
    limit = int(settings["wal_autocheckpoint_pages"])
    if settings["journal_mode"] == "wal" and limit and settings["workload"] != INSERT:
        pages = limit + of_a_transaction * (1 + int(settings["connections"]))
    return pages * page_bytes


def _databases_too_large(settings: Settings, capacity_bytes: int, needed: int) -> str:
    counts = range(1, int(settings["initial_rows"]) + 1)
    fits = bisect_right(
        counts, capacity_bytes // 4 * 3, key=lambda rows: sum(_databases_bytes(settings, rows))
    )
    larger = -(-needed * 4 // 3 // (64 * MIB)) * 64 * MIB
    return (
        f"initial_rows = {settings['initial_rows']} with value_bytes = {settings['value_bytes']} "
        f"makes databases of {needed // MIB} MiB, more than three quarters of "
        f"{settings['device']}, which has {capacity_bytes // MIB} MiB; {fits} rows fit, or "
        f"device.capacity_bytes = {larger}"
    )


_row_workload = partial(
    Workload,
    harm=Harm.COMMITS,
    groups=(DRAWN, SQLITE, ROWS, FAULTS),
    bench="sqlite",
    is_judged_anywhere=True,
    refusal=_rows_refusal,
    default_rows=_default_rows,
    files_bytes=_files_bytes,
    too_large=_databases_too_large,
)
_script_workload = partial(
    Workload, harm=Harm.COMMITS, bench="sql", needs="scripts", refusal=_script_refusal
)
WORKLOADS = (
    _row_workload(name=INSERT, has_measured_pages=True, mobibench_flags=("-d 0",)),
    _row_workload(name=UPDATE, mobibench_flags=("-d 1",)),
    _row_workload(name=DELETE, mobibench_flags=("-d 2",)),
    _script_workload(name=SQL, groups=(DRAWN, SQLITE, SCRIPTS, FAULTS)),
    _script_workload(name=SQL_RECORDED, groups=(SQLITE, SCRIPTS, FAULTS)),
)
