//! Real SQLite on this machine's own files: what the workload promises, without a guest.

use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;

use rustix::fs::inotify;

use super::*;
use crate::sqlite::options::tests::options;
use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
use crate::sqlite::pragmas::{
    AttachedSettings, AutoVacuum, JournalMode, LockingMode, SecureDelete, Synchronous, TempStore,
};
use crate::tables::rows::Transaction;
use crate::workload::sqlite::settings::tests::settings;
use crate::workload::sqlite::settings::{KeyOrder, SqliteWorkload};
use crate::workload::sqlite::transactions::verb;
use crate::workload::threads::noted_phases::NotedPhases;

pub fn run(settings: &SqliteSettings) -> (NotedPhases, ClosedWorkload) {
    let directory = tempfile::tempdir().unwrap();
    let mut sqlite = Sqlite::prepare(directory.path(), settings, 5).unwrap();
    let mut notes = NotedPhases::default();
    sqlite.run(&mut notes).unwrap();
    let closed = Box::new(sqlite).close().unwrap();
    closed.remains.check().unwrap();
    (notes, closed)
}

#[test]
fn every_mode_and_operation_leaves_a_sound_database() {
    use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    for journal_mode in [Delete, Truncate, Persist, Memory, Wal, Off] {
        for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
            for key_order in [KeyOrder::Sequential, KeyOrder::Random] {
                let settings = SqliteSettings {
                    workload,
                    key_order,
                    initial_rows: 50,
                    options: SqliteOptions { journal_mode, ..options() },
                    ..settings()
                };
                let (_, closed) = run(&settings);
                let changes = closed.transactions.iter().filter(|t| t.kind == verb(workload));
                assert_eq!(changes.count(), 9, "{journal_mode} {workload} {key_order}");
            }
        }
    }
}

#[test]
fn a_commit_makes_the_syncs_its_journal_mode_needs() {
    // attribution by system call of one insert at synchronous=FULL; EXTRA adds a directory sync
    // after the journal is gone in DELETE mode (sqlite.org/pragma.html#pragma_synchronous).
    use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    let expected = [
        (Delete, Synchronous::Full, 4),
        (Delete, Synchronous::Extra, 5),
        (Truncate, Synchronous::Full, 5),
        (Persist, Synchronous::Full, 5),
        (Wal, Synchronous::Full, 1),
        (Wal, Synchronous::Normal, 0),
        (Memory, Synchronous::Full, 1),
        (Off, Synchronous::Full, 1),
        (Truncate, Synchronous::Off, 0),
    ];
    for (journal_mode, synchronous, syncs) in expected {
        let (_, closed) = run(&SqliteSettings {
            options: SqliteOptions { journal_mode, synchronous, ..options() },
            ..settings()
        });
        let last = closed.transactions.iter().rfind(|t| t.kind == "insert").unwrap();
        assert_eq!(last.sync_calls, syncs, "{journal_mode} {synchronous}");
    }
}

#[test]
fn a_full_wal_is_checkpointed_apart_from_the_commits() {
    let settings = SqliteSettings {
        warmup_transactions: 0,
        options: SqliteOptions {
            journal_mode: JournalMode::Wal,
            wal_autocheckpoint_pages: 2,
            ..options()
        },
        ..settings()
    };
    let (notes, closed) = run(&settings);
    let kinds: Vec<&str> = closed.transactions.iter().map(|t| t.kind.as_str()).collect();
    assert!(kinds.iter().filter(|kind| **kind == "checkpoint").count() >= 3, "{kinds:?}");
    assert_eq!(notes.phases[..3], ["commit", "checkpoint", "commit"]);
    assert_eq!(*notes.phases.last().unwrap(), "checkpoint");
    let checkpoint = closed.transactions.iter().find(|t| t.kind == "checkpoint").unwrap();
    assert!(checkpoint.wal_frames >= 2 && checkpoint.sync_calls >= 1, "{checkpoint:?}");
}

#[test]
fn sqlite_checkpoints_inside_a_commit_where_it_shall() {
    let settings = SqliteSettings {
        databases: number(2),
        warmup_transactions: 0,
        transactions: 11,
        options: SqliteOptions {
            journal_mode: JournalMode::Wal,
            wal_autocheckpoint_pages: 5,
            autocheckpoint: Autocheckpoint::Sqlite,
            ..options()
        },
        ..settings()
    };
    let (notes, closed) = run(&settings);
    let rows = &closed.transactions;
    let inside: Vec<_> = rows
        .windows(2)
        .filter(|pair| pair[1].kind == "checkpoint" && pair[1].return_ns <= pair[0].return_ns)
        .collect();
    assert!(inside.len() >= 2, "{rows:?}");
    for pair in inside {
        let (commit, checkpoint) = (&pair[0], &pair[1]);
        assert!(checkpoint.begin_ns >= commit.commit_ns && checkpoint.thread == commit.thread);
        // Its syncs are not the commit's: one of each WAL at FULL, here and without a checkpoint.
        assert_eq!(commit.sync_calls, 2);
        assert_eq!(checkpoint.databases, 2);
        assert!(checkpoint.sync_calls >= 2 && checkpoint.wal_frames >= 10, "{checkpoint:?}");
        assert_eq!(commit.wal_frames, checkpoint.wal_frames);
    }
    // The workload makes none but that of what is left at the end.
    assert!(notes.phases.len() <= 2 && notes.phases[0] == "commit", "{:?}", notes.phases);
    assert!(rows.iter().filter(|row| row.kind == "insert").count() == 11);
}

#[test]
fn the_configuration_is_what_sqlite_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        options: SqliteOptions { page_size_bytes: 8192, ..options() },
        ..settings()
    };
    let sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
    let configuration = sqlite.configuration().unwrap();
    let main = &configuration["databases"]["main"];
    assert_eq!(main["page_size"], "8192");
    assert_eq!(main["journal_mode"], "truncate");
    assert_eq!(main["synchronous"], "2");
    let options = configuration["sqlite_compile_options"].to_string();
    assert!(options.contains("ENABLE_BATCH_ATOMIC_WRITE"), "{options}");
}

#[test]
fn a_setting_sqlite_refuses_fails_the_case() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        options: SqliteOptions { page_size_bytes: 1000, ..options() },
        ..settings()
    };
    let error = Sqlite::prepare(directory.path(), &settings, 5).err().unwrap().to_string();
    assert!(error.contains("page_size reads back 4096 where 1000 was set"), "{error}");
}

pub fn number(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

/// Runs three databases in a watched directory; gives their transactions, and how many
/// super-journals were made meanwhile; they must all be gone.
fn run_three(settings: SqliteSettings) -> (Vec<Transaction>, usize) {
    use inotify::{CreateFlags, ReadFlags, WatchFlags};
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { databases: number(3), ..settings };
    let mut sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let events = WatchFlags::CREATE | WatchFlags::DELETE;
    inotify::add_watch(&watch, directory.path(), events).unwrap();
    sqlite.run(&mut NotedPhases::default()).unwrap();
    let closed = Box::new(sqlite).close().unwrap();
    closed.remains.check().unwrap();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1 << 16];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let (mut made, mut gone) = (0, 0);
    while let Ok(event) = events.next() {
        let name = event.file_name().unwrap().to_str().unwrap();
        if name.starts_with("main.db-mj") {
            made += usize::from(event.events().contains(ReadFlags::CREATE));
            gone += usize::from(event.events().contains(ReadFlags::DELETE));
        }
    }
    assert_eq!(made, gone);
    (closed.transactions, made)
}

#[test]
fn rollback_journals_of_several_databases_are_joined_by_a_super_journal() {
    use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    // Every database makes the syncs of one alone. The super-journal adds three: its own, its
    // directory's when it is made, and its directory's when it is gone (vdbeCommit() in
    // src/vdbeaux.c; sqlite.org/atomiccommit.html#_multi_file_commit).
    let expected = [
        (Delete, true, 3 * 4 + 3),
        (Truncate, true, 3 * 5 + 3),
        (Persist, true, 3 * 5 + 3),
        (Memory, false, 3),
        (Wal, false, 3),
        (Off, false, 3),
    ];
    for (journal_mode, atomic, syncs) in expected {
        let settings =
            SqliteSettings { options: SqliteOptions { journal_mode, ..options() }, ..settings() };
        let (transactions, made) = run_three(settings.clone());
        assert_eq!(made, if atomic { 9 } else { 0 }, "{journal_mode}");
        let last = transactions.iter().rfind(|t| t.kind == "insert").unwrap();
        assert_eq!((last.databases, last.sync_calls), (3, syncs), "{journal_mode}");
        let three = SqliteSettings { databases: number(3), ..settings };
        assert_eq!(three.is_atomic_across_databases(), atomic, "{journal_mode}");
    }
}

#[test]
fn persist_keeps_its_journals_only_within_one_database() {
    // zeroJournalHdr() in src/pager.c truncates a journal that names a super-journal, so that over
    // several databases PERSIST costs what TRUNCATE costs.
    for (databases, kept) in [(1, true), (2, false)] {
        let directory = tempfile::tempdir().unwrap();
        let settings = SqliteSettings {
            databases: number(databases),
            options: SqliteOptions { journal_mode: JournalMode::Persist, ..options() },
            ..settings()
        };
        let mut sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
        sqlite.run(&mut NotedPhases::default()).unwrap();
        let journal = std::fs::metadata(directory.path().join("main.db-journal")).unwrap();
        assert_eq!(journal.len() > 0, kept, "{databases} databases");
    }
}

#[test]
fn a_transaction_without_syncs_makes_no_super_journal() {
    let synchronous = Synchronous::Off;
    let settings = SqliteSettings {
        options: SqliteOptions { journal_mode: JournalMode::Persist, synchronous, ..options() },
        ..settings()
    };
    let (transactions, made) = run_three(settings.clone());
    assert_eq!(made, 0);
    assert!(transactions.iter().all(|t| t.sync_calls == 0));
    assert!(!SqliteSettings { databases: number(3), ..settings }.is_atomic_across_databases());
}

#[test]
fn settings_hold_in_every_database() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        databases: number(2),
        options: SqliteOptions {
            locking_mode: LockingMode::Exclusive,
            secure_delete: SecureDelete::Fast,
            auto_vacuum: AutoVacuum::Incremental,
            temp_store: TempStore::Memory,
            ..options()
        },
        ..settings()
    };
    let sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
    let configuration = sqlite.configuration().unwrap();
    for database in ["main", "db2"] {
        let found = &configuration["databases"][database];
        assert_eq!(found["locking_mode"], "exclusive", "{database}");
        assert_eq!(found["secure_delete"], "2", "{database}");
        assert_eq!(found["auto_vacuum"], "2", "{database}");
        assert_eq!(found["temp_store"], "2", "{database}");
        assert_eq!(found["journal_mode"], "truncate", "{database}");
    }
    assert_eq!(configuration["atomic_across_databases"], true);
}

/// Open files without a name that hold some bytes, which tell them from those of tests beside this
/// one: SQLite's temporary files have none, from O_TMPFILE or unlinked at once.
fn temporary_files_with(bytes: &str) -> usize {
    let holds = |path: std::path::PathBuf| {
        std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.nlink() == 0)
            && std::fs::read(&path).is_ok_and(|all| String::from_utf8_lossy(&all).contains(bytes))
    };
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.filter(|entry| holds(entry.as_ref().unwrap().path())).count()
}

/// No operation of ours needs a temporary file (tests/live/test_strace.py), so this brings one.
#[test]
fn a_temporary_table_is_where_temp_store_says() {
    for (temp_store, files) in [(TempStore::File, 1), (TempStore::Memory, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let settings =
            SqliteSettings { options: SqliteOptions { temp_store, ..options() }, ..settings() };
        let sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
        let databases = &sqlite.workers[0].databases;
        let mark = format!("spilled to {temp_store:?}");
        let spilling = format!(
            "CREATE TEMP TABLE large (value);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
            INSERT INTO large SELECT '{mark}' || hex(zeroblob(1990)) FROM n"
        );
        databases.batch(&spilling, &databases.all()[0]).unwrap();
        assert_eq!(temporary_files_with(&mark), files, "{temp_store:?}");
    }
}

#[test]
fn tables_statements_and_selects_leave_sound_databases() {
    use JournalMode::{Delete, Persist, Wal};
    for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
        for journal_mode in [Delete, Persist, Wal] {
            for locking_mode in [LockingMode::Normal, LockingMode::Exclusive] {
                run(&SqliteSettings {
                    workload,
                    databases: number(2),
                    tables: number(3),
                    statements: number(4),
                    selects: 5,
                    initial_rows: 12,
                    interval_us: 1,
                    options: SqliteOptions {
                        journal_mode,
                        locking_mode,
                        auto_vacuum: AutoVacuum::Full,
                        secure_delete: SecureDelete::On,
                        ..options()
                    },
                    ..settings()
                });
            }
        }
    }
}

#[test]
fn more_databases_than_sqlite_attaches_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { databases: number(102), ..settings() };
    let error = Sqlite::prepare(directory.path(), &settings, 5).err().unwrap().to_string();
    assert!(error.contains("ATTACH") && error.contains("too many attached databases"), "{error}");
}

#[test]
fn attached_databases_keep_the_settings_of_sqlite_where_that_is_asked_for() {
    let two = NonZeroU64::new(2).unwrap();
    for (attached, mode) in [(AttachedSettings::Set, "wal"), (AttachedSettings::Sqlite, "delete")] {
        let mut case = SqliteSettings { databases: two, ..settings() };
        case.options.journal_mode = JournalMode::Wal;
        case.options.attached_settings = attached;
        let directory = tempfile::tempdir().unwrap();
        let mut sqlite = Sqlite::prepare(directory.path(), &case, 5).unwrap();
        let found = sqlite.configuration().unwrap();
        assert_eq!(found["databases"]["main"]["journal_mode"], "wal");
        assert_eq!(found["databases"]["db2"]["journal_mode"], mode);
        sqlite.run(&mut NotedPhases::default()).unwrap();
        Box::new(sqlite).close().unwrap().remains.check_oracle().unwrap();
    }
}
