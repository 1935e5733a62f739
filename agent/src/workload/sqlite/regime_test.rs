//! Real SQLite on this machine's own files: each regime is reached, and shows.

use std::num::NonZeroU64;

use serde_json::Value;

use super::settings::tests::settings;
use super::settings::{KeyOrder, Sharing, SqliteSettings, SqliteWorkload};
use crate::sqlite::options::tests::options;
use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
use crate::sqlite::pragmas::{JournalMode, SecureDelete, Synchronous};
use crate::sqlite::vfs::Vfs;
use crate::workload::kind::{ClosedWorkload, WorkloadRequest};
use crate::workload::regime::{GrownFiles, Regime, RegimeFields, Reopenings, missed};

fn run(settings: &SqliteSettings) -> ClosedWorkload {
    let directory = tempfile::tempdir().unwrap();
    let mut workload = settings.prepare(directory.path(), 5).unwrap();
    workload.run(&mut ()).unwrap();
    let closed = workload.close().unwrap();
    closed.remains.check().unwrap();
    closed
}

fn regime_entry(closed: &ClosedWorkload) -> &Value {
    &closed.manifest.iter().find(|(key, _)| *key == "regime").unwrap().1
}

/// Sizes of the file with such an end, before and after the measured part.
fn sizes(closed: &ClosedWorkload, end: &str) -> Option<(u64, u64)> {
    let all = regime_entry(closed)["files"]["sizes"].as_array().unwrap();
    let of = |pair: &Value| (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
    all.iter()
        .find(|file| file["name"].as_str().unwrap().ends_with(end))
        .map(|file| of(&file["size_bytes"]))
}

fn many(journal_mode: JournalMode, regime: Regime) -> SqliteSettings {
    SqliteSettings {
        regime: RegimeFields { regime, burst_transactions: NonZeroU64::MIN },
        transactions: 211,
        value_bytes: 700,
        options: SqliteOptions {
            journal_mode,
            synchronous: Synchronous::Off, // which changes no size, and saves a minute
            wal_autocheckpoint_pages: 100,
            ..options()
        },
        ..settings()
    }
}

#[test]
fn in_the_steady_regime_no_file_grows_whatever_is_done() {
    use JournalMode::{Delete, Off, Persist, Truncate, Wal};
    for journal_mode in [Delete, Truncate, Persist, Wal, Off] {
        for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
            for (key_order, statements, value_bytes, secure_delete) in [
                (KeyOrder::Sequential, 1, 100, SecureDelete::Off),
                (KeyOrder::Random, 3, 700, SecureDelete::On),
                (KeyOrder::Random, 2, 9000, SecureDelete::Off),
            ] {
                let mut settings = SqliteSettings {
                    workload,
                    key_order,
                    statements: NonZeroU64::new(statements).unwrap(),
                    value_bytes,
                    transactions: 61,
                    initial_rows: 200,
                    ..many(journal_mode, Regime::Steady)
                };
                settings.options.secure_delete = secure_delete;
                let closed = run(&settings);
                let what = format!("{journal_mode} {workload} {key_order} {value_bytes}");
                assert!(closed.incomplete_reasons.is_empty(), "{what} {}", regime_entry(&closed));
                let (before, after) = sizes(&closed, ".db").unwrap();
                assert_eq!(before, after, "{what}");
            }
        }
    }
}

#[test]
fn a_wal_is_begun_anew_while_it_is_steady_and_journals_keep_their_size() {
    for autocheckpoint in [Autocheckpoint::Workload, Autocheckpoint::Sqlite] {
        let mut settings = many(JournalMode::Wal, Regime::Steady);
        settings.options.autocheckpoint = autocheckpoint;
        let closed = run(&settings);
        let sequences = &regime_entry(&closed)["files"]["wal_sequences"][0];
        let resets = sequences[1].as_u64().unwrap() - sequences[0].as_u64().unwrap();
        assert!(resets >= 2, "{sequences}");
        let (before, after) = sizes(&closed, "-wal").unwrap();
        assert_eq!(before, after);
        assert!(before < 300 * 4096, "{before} bytes, by little work");
    }
    let closed = run(&many(JournalMode::Persist, Regime::Steady));
    assert!(sizes(&closed, "-journal").unwrap().0 > 0);
}

#[test]
fn fresh_files_grow() {
    let closed = run(&many(JournalMode::Wal, Regime::Fresh));
    let (before, after) = sizes(&closed, "-wal").unwrap();
    assert!(before < after);
    assert!(closed.incomplete_reasons.is_empty());
}

#[test]
fn what_grew_was_not_steady() {
    // A run that only says that it is steady.
    let directory = tempfile::tempdir().unwrap();
    let fresh = many(JournalMode::Wal, Regime::Fresh);
    let mut grown = GrownFiles::new([directory.path().join("main.db")].into());
    let mut workload = fresh.prepare(directory.path(), 5).unwrap();
    workload.run(&mut grown.observe_with(&mut ())).unwrap();
    let reasons = missed(Regime::Steady, &fresh.options, &grown, Reopenings::default());
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[0].starts_with("not steady: main.db grew in the measured part, from "));
    assert!(reasons[1].starts_with("not steady: main.db-wal grew"));
}

#[test]
fn a_connection_is_opened_again_around_each_burst_and_its_wal_deleted() {
    let burst_transactions = NonZeroU64::new(10).unwrap();
    let mut settings = many(JournalMode::Wal, Regime::Reopened);
    settings.regime.burst_transactions = burst_transactions;
    let closed = run(&settings);
    assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
    // 2 of the warm-up and 211: 21 whole bursts, and the rest of one.
    assert_eq!(regime_entry(&closed)["reopenings"], 22);
    assert_eq!(regime_entry(&closed)["wals_deleted"], 22);
    let rows = &closed.transactions;
    assert_eq!(rows.iter().filter(|row| row.kind == "reopening").count(), 22);
    assert!(rows.iter().all(|row| (row.kind == "reopening") == (row.phase == "checkpoint")));
    assert!(rows.iter().filter(|row| row.kind == "reopening").all(|row| row.wal_frames > 0));
    let reopenings = Reopenings { count: 22, wals_deleted: 21, wals_due: 22 };
    let grown = GrownFiles::new([].into());
    let kept = missed(Regime::Reopened, &settings.options, &grown, reopenings);
    assert_eq!(kept, ["not reopened: 21 WALs were deleted where 22 were due"]);

    let settings = many(JournalMode::Truncate, Regime::Reopened);
    assert_eq!(regime_entry(&run(&settings))["reopenings"], 213); // a burst of one
}

#[test]
fn the_vfs_of_the_cure_fills_a_wal_and_keeps_it() {
    let mut settings = many(JournalMode::Wal, Regime::Reopened);
    settings.options.vfs = Vfs::Wal;
    let directory = tempfile::tempdir().unwrap();
    let mut workload = settings.prepare(directory.path(), 5).unwrap();
    workload.run(&mut ()).unwrap();
    let closed = workload.close().unwrap();
    assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
    assert_eq!(regime_entry(&closed)["wals_deleted"], 0);
    // The first step of the filling (vfs/wal_file.c), as no burst writes more.
    assert_eq!(sizes(&closed, "-wal"), Some((64 << 10, 64 << 10)));
    // Plain SQLite reads what the VFS reads, and leaves the WAL that it is to open after it.
    closed.remains.check_oracle().unwrap();

    settings.regime.regime = Regime::Fresh;
    // 100 frames and those of one transaction more: the fourth step.
    assert_eq!(sizes(&run(&settings), "-wal").unwrap().1, 512 << 10);
}

#[test]
fn the_redo_log_takes_the_place_of_journals_and_leaves_databases_to_any_sqlite() {
    let databases = NonZeroU64::new(3).unwrap();
    let connections = NonZeroU64::new(2).unwrap();
    for sharing in [Sharing::Own, Sharing::Shared] {
        for regime in [Regime::Fresh, Regime::Steady, Regime::Reopened] {
            if (regime, sharing) == (Regime::Reopened, Sharing::Shared) {
                continue;
            }
            let mut settings = SqliteSettings {
                sharing,
                connections,
                databases,
                ..many(JournalMode::Truncate, regime)
            };
            settings.options.vfs = Vfs::Redo;
            settings.options.synchronous = Synchronous::Full;
            let directory = tempfile::tempdir().unwrap();
            let mut workload = settings.prepare(directory.path(), 5).unwrap();
            workload.run(&mut ()).unwrap();
            let closed = workload.close().unwrap();
            assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
            assert_eq!(sizes(&closed, "-journal"), None);
            let commits = closed.transactions.iter().filter(|row| row.phase == "commit");
            let syncs: Vec<i64> = commits.map(|row| row.sync_calls).collect();
            // The first commit of an opening sets the marks, and one may find the log full.
            let of_one = syncs.iter().filter(|syncs| **syncs == 1).count();
            assert!(
                regime == Regime::Reopened || of_one >= syncs.len() - 4,
                "{sharing} {regime}: {syncs:?}"
            );
            assert_eq!(
                std::fs::metadata(directory.path().join("joj-redo.log")).unwrap().len(),
                4 << 20
            );
            closed.remains.check_oracle().unwrap();
        }
    }
}

#[test]
fn several_connections_and_databases_are_steady_too() {
    let (two, three) = (NonZeroU64::new(2).unwrap(), NonZeroU64::new(3).unwrap());
    for sharing in [Sharing::Own, Sharing::Shared] {
        for journal_mode in [JournalMode::Wal, JournalMode::Persist] {
            let settings = SqliteSettings {
                sharing,
                connections: two,
                databases: three,
                ..many(journal_mode, Regime::Steady)
            };
            let closed = run(&settings);
            assert!(closed.incomplete_reasons.is_empty(), "{}", regime_entry(&closed));
        }
    }
}
