//! Histories beside real databases on this machine's own files.

use std::num::NonZeroU64;

use rusqlite::Connection;

use super::*;
use crate::tables::rows::Transaction;
use crate::workload::kind::{ClosedWorkload, Remains, Workload};
use crate::workload::power_cut::{Cut, CutOutcome, Survival};
use crate::workload::sqlite::Sqlite;
use crate::workload::sqlite::settings::Sharing;
use crate::workload::sqlite::settings::tests::settings;
use crate::workload::threads::noted_phases::NotedPhases;

/// Databases after a run, in a directory that lives as long as they are looked at.
struct Ran {
    directory: tempfile::TempDir,
    transactions: Vec<Transaction>,
    remains: Box<dyn Remains>,
}

impl Ran {
    fn new(settings: &SqliteSettings, seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut sqlite = Sqlite::prepare(directory.path(), settings, seed).unwrap();
        sqlite.run(&mut NotedPhases::default()).unwrap();
        let ClosedWorkload { mut transactions, remains, .. } = Box::new(sqlite).close().unwrap();
        transactions.retain(|it| it.phase != "checkpoint");
        Self { directory, transactions, remains }
    }

    /// What would be said if the power had been cut then.
    fn survived(&self, at_ns: i64) -> Result<Survival, WorkloadError> {
        self.remains.survived(&Cut { transactions: &self.transactions, at_ns })
    }

    fn change(&self, sql: &str) {
        let connection = Connection::open(self.directory.path().join("main.db")).unwrap();
        assert_eq!(connection.execute(sql, []).unwrap(), 1);
    }
}

fn fields(workload: SqliteWorkload) -> SqliteSettings {
    let two = NonZeroU64::new(2).unwrap();
    SqliteSettings {
        workload,
        initial_rows: 100,
        tables: two,
        statements: NonZeroU64::new(3).unwrap(),
        databases: two,
        ..settings()
    }
}

#[test]
fn a_database_is_found_where_its_transactions_end() {
    for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
        let ran = Ran::new(&fields(workload), 5);
        let found = ran.survived(i64::MAX).unwrap();
        let all = Some(ran.transactions.len() as u64);
        assert_eq!((found.outcome, found.found), (CutOutcome::Kept, vec![all; 2]), "{workload}");
        // What had not begun cannot be there.
        let before = ran.transactions.last().unwrap().begin_ns;
        assert_eq!(ran.survived(before).unwrap().outcome, CutOutcome::Corrupt, "{workload}");
    }
}

#[test]
fn several_connections_are_found_where_theirs_end() {
    for sharing in [Sharing::Own, Sharing::Shared] {
        let connections = NonZeroU64::new(3).unwrap();
        let case = SqliteSettings {
            sharing,
            connections,
            transactions: 31,
            ..fields(SqliteWorkload::Update)
        };
        let ran = Ran::new(&case, 5);
        let found = ran.survived(i64::MAX).unwrap();
        assert_eq!(found.outcome, CutOutcome::Kept, "{sharing}");
        let counted: u64 = found.found.iter().flatten().sum();
        assert_eq!(counted, 2 * 33, "{sharing}: {:?}", found.found);
        // Each transaction of the one that committed last is missed by its own thread.
        let mut order = ran.transactions.clone();
        order.sort_by_key(|it| it.commit_ns);
        let last_ns = order[order.len() - 1].commit_ns;
        assert_eq!(ran.survived(last_ns - 1).unwrap().outcome, CutOutcome::Corrupt, "{sharing}");
        ran.change("UPDATE record SET value = 'x' || substr(value, 2) WHERE key = 1");
        assert_eq!(ran.survived(i64::MAX).unwrap().outcome, CutOutcome::Corrupt, "{sharing}");
    }
}

#[test]
fn an_older_database_has_lost_what_came_after() {
    let case = fields(SqliteWorkload::Insert);
    let (short, long) = (Ran::new(&case, 5), {
        let transactions = case.transactions + 4;
        Ran::new(&SqliteSettings { transactions, ..case.clone() }, 5)
    });
    for name in ["main.db", "db2.db"] {
        let (from, to) = (short.directory.path().join(name), long.directory.path().join(name));
        std::fs::copy(from, to).unwrap();
    }
    let found = long.survived(i64::MAX).unwrap();
    assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 4));
    let from = short.directory.path().join("db2.db");
    std::fs::remove_file(&from).unwrap();
    assert!(short.survived(i64::MAX).is_err(), "a database that is gone");
    assert!(!from.exists());
    std::fs::write(&from, [b'x'; 8192]).unwrap();
    assert!(short.survived(i64::MAX).is_err(), "what is no database");
}
