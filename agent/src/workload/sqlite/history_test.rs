//! Histories beside real databases on this machine's own files.

use std::num::NonZeroU64;

use rusqlite::Connection;

use super::*;
use crate::workload::kind::Workload;
use crate::workload::sqlite::prepared::Sqlite;
use crate::workload::sqlite::settings::tests::settings;
use crate::workload::threads::noted_phases::NotedPhases;

/// Databases after a run, in a directory that lives as long as they are looked at.
fn run(settings: &SqliteSettings, seed: u64) -> (tempfile::TempDir, u64) {
    let directory = tempfile::tempdir().unwrap();
    let mut sqlite = Sqlite::prepare(directory.path(), settings, seed).unwrap();
    sqlite.run(&mut NotedPhases::default()).unwrap();
    let transactions = Box::new(sqlite).close().unwrap().transactions;
    let performed = transactions.iter().filter(|it| it.kind != "checkpoint").count();
    (directory, performed as u64)
}

#[test]
fn a_database_is_found_where_its_transactions_end() {
    for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
        let two = NonZeroU64::new(2).unwrap();
        let fields = SqliteSettings {
            workload,
            initial_rows: 50,
            tables: two,
            statements: NonZeroU64::new(3).unwrap(),
            databases: two,
            ..settings()
        };
        let (directory, performed) = run(&fields, 5);
        let history = History::new(&fields, 5, performed + 2).unwrap();
        for name in ["main.db", "db2.db"] {
            let path = directory.path().join(name);
            assert_eq!(history.find(&path, performed + 2).unwrap(), Some(performed), "{workload}");
            // What had not begun cannot be there.
            assert_eq!(history.find(&path, performed - 1).unwrap(), None, "{workload}");
        }
        let of_another_seed = History::new(&fields, 6, performed).unwrap();
        let path = directory.path().join("main.db");
        assert_eq!(of_another_seed.find(&path, performed).unwrap(), None, "{workload}");
    }
}

#[test]
fn one_row_that_is_not_as_it_was_written_is_noticed() {
    let fields = settings();
    let (directory, performed) = run(&fields, 5);
    let path = directory.path().join("main.db");
    let connection = Connection::open(&path).unwrap();
    let change = "UPDATE record SET value = 'x' || substr(value, 2) WHERE key = 1";
    assert_eq!(connection.execute(change, []).unwrap(), 1);
    drop(connection);
    let history = History::new(&fields, 5, performed).unwrap();
    assert_eq!(history.find(&path, performed).unwrap(), None);
}

#[test]
fn what_is_no_database_is_an_error_and_is_not_made() {
    let history = History::new(&settings(), 5, 3).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("main.db");
    assert!(history.find(&path, 3).is_err());
    assert!(!path.exists());
    std::fs::write(&path, [b'x'; 8192]).unwrap();
    assert!(history.find(&path, 3).is_err());
}

#[test]
fn several_connections_have_no_one_history() {
    let fields = SqliteSettings { connections: NonZeroU64::new(2).unwrap(), ..settings() };
    assert!(History::new(&fields, 5, 3).is_err_and(|error| error.is_wrong_use()));
}
