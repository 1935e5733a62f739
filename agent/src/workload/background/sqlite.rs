//! A second app that uses SQLite: inserts a row a transaction into a database of its own, with a
//! rollback journal that is truncated and every commit synced, as apps of Android 4 did.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::signals::Signals;
use crate::sqlite::databases::Databases;
use crate::sqlite::pragmas::Pragmas;
use crate::sqlite::wal::Database;
use crate::sqlite::words::JournalMode;

/// Idle time between two transactions: a busy app, but not one that does nothing else.
const INTERVAL_NS: i64 = 10_000_000;
/// Bytes of a row's value, as in the ATC'13 study.
const VALUE_BYTES: usize = 100;

/// Inserts until told to stop; gives what it did.
///
/// # Errors
/// If SQLite fails.
pub fn run(directory: &Path) -> anyhow::Result<Value> {
    let path = directory.join("app.db");
    let name = || path.display().to_string();
    let database = Database::new("main".into(), path.clone());
    let pragmas = Pragmas::synced(JournalMode::Truncate);
    let databases = Databases::open(vec![database.clone()], &pragmas, None)?;
    let table = "CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)";
    databases.batch(table, &database)?;
    let mut insert = databases.statement("INSERT INTO record (value) VALUES (?1)", &database)?;
    let value = "a".repeat(VALUE_BYTES);
    let mut transactions = 0_u64;
    let signals = Signals::begin()?;
    while !signals.shall_stop(INTERVAL_NS) {
        insert.execute([&value]).with_context(name)?;
        transactions += 1;
    }
    Ok(json!({ "transactions": transactions, "interval_ns": INTERVAL_NS }))
}
