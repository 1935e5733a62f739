//! Transactions of several connections, and the checkpoints between them, on this machine's files.

use crate::sqlite::options::SqliteOptions;
use crate::sqlite::options::tests::options;
use crate::sqlite::pragmas::{CheckpointMode, JournalMode};
use crate::workload::sqlite::prepared_tests::{number, run};
use crate::workload::sqlite::settings::tests::settings;
use crate::workload::sqlite::settings::{KeyOrder, Sharing, SqliteSettings, SqliteWorkload};

#[test]
fn every_checkpoint_mode_copies_every_wal() {
    use CheckpointMode::{Full, Passive, Restart, Truncate};
    for checkpoint_mode in [Passive, Full, Restart, Truncate] {
        let (_, closed) = run(&SqliteSettings {
            databases: number(2),
            options: SqliteOptions {
                journal_mode: JournalMode::Wal,
                wal_autocheckpoint_pages: 2,
                checkpoint_mode,
                ..options()
            },
            ..settings()
        });
        let checkpoints = closed.transactions.iter().filter(|t| t.kind == "checkpoint");
        assert!(checkpoints.clone().count() >= 3, "{checkpoint_mode}");
        for checkpoint in checkpoints {
            assert_eq!(checkpoint.databases, 2, "{checkpoint_mode}");
            // The last one copies what is left, however little.
            assert!(checkpoint.wal_frames >= 2, "{checkpoint_mode}: {checkpoint:?}");
            assert!(checkpoint.sync_calls >= 2, "{checkpoint_mode}: {checkpoint:?}");
        }
    }
}

#[test]
fn the_interval_is_spent_between_transactions() {
    let begin = std::time::Instant::now();
    run(&SqliteSettings { interval_us: 2_000, ..settings() });
    // 9 transactions in two phases; a sleep is never shorter than asked for (nanosleep(2)).
    assert!(begin.elapsed() >= std::time::Duration::from_micros(7 * 2_000));
}

#[test]
fn connections_share_the_transactions_out() {
    use JournalMode::{Delete, Memory, Persist, Truncate, Wal};
    for journal_mode in [Delete, Truncate, Persist, Memory, Wal] {
        for sharing in [Sharing::Own, Sharing::Shared] {
            for workload in [SqliteWorkload::Insert, SqliteWorkload::Delete] {
                let (_, closed) = run(&SqliteSettings {
                    workload,
                    sharing,
                    connections: number(3),
                    databases: number(2),
                    selects: 1,
                    initial_rows: 100,
                    key_order: KeyOrder::Random,
                    options: SqliteOptions {
                        journal_mode,
                        wal_autocheckpoint_pages: 5,
                        ..options()
                    },
                    ..settings()
                });
                let what = format!("{journal_mode} {sharing} {workload}");
                let rows = &closed.transactions;
                let commits = rows.iter().filter(|row| row.kind != "checkpoint");
                let of = |thread| commits.clone().filter(|row| row.thread == thread).count();
                // 2 of warm-up, 7 measured: the first threads have the rest.
                assert_eq!([of(0), of(1), of(2)], [1 + 3, 1 + 2, 2], "{what}");
                assert!(rows.is_sorted_by_key(|row| row.begin_ns), "{what}");
                assert!(rows.iter().zip(0..).all(|(row, id)| row.transaction_id == id));
                let checkpoints = rows.iter().filter(|row| row.kind == "checkpoint").count();
                assert_eq!(checkpoints > 0, journal_mode == Wal, "{what}");
            }
        }
    }
}

#[test]
fn waiting_for_another_connection_is_counted() {
    let settings = SqliteSettings {
        sharing: Sharing::Shared,
        connections: number(4),
        // Many looks keep the lock for long enough that others meet it.
        selects: 1000,
        initial_rows: 1000,
        transactions: 100,
        ..settings()
    };
    let retries = |_| -> i64 { run(&settings).1.transactions.iter().map(|t| t.busy_retries).sum() };
    // Whether the threads meet is the scheduler's choice; that they never do is none.
    assert!((0..20).map(retries).any(|retries| retries > 0));
}

#[test]
fn alone_nobody_waits_and_a_time_ends_the_transactions() {
    let settings = SqliteSettings { transactions: 0, duration_ms: 5, ..settings() };
    let (notes, closed) = run(&settings);
    assert_eq!(notes.phases, ["warm-up", "commit"]);
    assert!(closed.transactions.iter().all(|row| row.busy_retries == 0));
    assert!(closed.transactions.iter().any(|row| row.phase == "commit"));
}
