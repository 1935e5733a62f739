//! A second app that uses SQLite: inserts a row a transaction into a database of its own, with a
//! rollback journal that is truncated and every commit synced, as apps of Android 4 did. After a
//! power cut, every insert that had returned must be there, and none by half.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::signals::Signals;
use crate::sqlite::databases::Databases;
use crate::sqlite::error::failed;
use crate::sqlite::pragmas::Pragmas;
use crate::sqlite::sound;
use crate::sqlite::wal::Database;
use crate::sqlite::words::JournalMode;
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::power_cut::{CutOutcome, Survival};

/// Idle time between two transactions: a busy app, but not one that does nothing else.
const INTERVAL_NS: i64 = 10_000_000;
/// Bytes of a row's value, as in the ATC'13 study.
const VALUE_BYTES: usize = 100;

/// When its inserts began and returned, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct AppTimes {
    /// When the table was there.
    ready_ns: i64,
    begin_ns: Vec<i64>,
    return_ns: Vec<i64>,
}

impl AppTimes {
    /// When its table and each of its rows were there to stay.
    pub fn promises_ns(&self) -> impl Iterator<Item = i64> {
        [self.ready_ns].into_iter().chain(self.return_ns.iter().copied())
    }
}

/// The child's key of `AppTimes`, which the manifest does not have.
pub const TIMES: &str = "times";

fn database_path(directory: &Path) -> PathBuf {
    directory.join("app.db")
}

fn value() -> String {
    "a".repeat(VALUE_BYTES)
}

/// Inserts until told to stop; gives what it did.
///
/// # Errors
/// If SQLite fails.
pub fn run(directory: &Path) -> anyhow::Result<Value> {
    let path = database_path(directory);
    let name = || path.display().to_string();
    let database = Database::new("main".into(), path.clone());
    let pragmas = Pragmas::synced(JournalMode::Truncate);
    let databases = Databases::open(vec![database.clone()], &pragmas, None)?;
    let table = "CREATE TABLE record (key INTEGER PRIMARY KEY, value TEXT NOT NULL)";
    databases.batch(table, &database)?;
    let mut times = AppTimes { ready_ns: now_ns(), ..AppTimes::default() };
    let mut insert = databases.statement("INSERT INTO record (value) VALUES (?1)", &database)?;
    let value = value();
    let signals = Signals::begin()?;
    while !signals.shall_stop(INTERVAL_NS) {
        times.begin_ns.push(now_ns());
        insert.execute([&value]).with_context(name)?;
        times.return_ns.push(now_ns());
    }
    let transactions = times.return_ns.len();
    Ok(json!({ "transactions": transactions, "interval_ns": INTERVAL_NS, TIMES: times }))
}

/// The database that it left.
pub struct AppLeft {
    pub directory: PathBuf,
    pub times: AppTimes,
}

impl AppLeft {
    /// Checks that every row is there.
    ///
    /// # Errors
    /// If it cannot be read, or holds something else.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let (found, wanted) = (self.rows()?, self.times.return_ns.len() as u64);
        if found == wanted {
            return Ok(());
        }
        Err(self.wrong(format!("holds {found} rows at the end where {wanted} were due")))
    }

    /// What is there after a power cut at that time.
    ///
    /// # Errors
    /// If it cannot be read, or holds what was never inserted.
    pub fn survived(&self, at_ns: i64) -> Result<Survival, WorkloadError> {
        if at_ns < self.times.ready_ns {
            // Nothing had returned yet: it may not be there at all.
            return Ok(Survival::kept());
        }
        let by_then = |times: &[i64]| times.iter().filter(|time| **time <= at_ns).count() as u64;
        let (returned, begun) = (by_then(&self.times.return_ns), by_then(&self.times.begin_ns));
        let found = self.rows()?;
        if found > begun {
            return Err(self.wrong(format!("holds {found} rows where {begun} had begun")));
        }
        Ok(match returned.saturating_sub(found) {
            0 => Survival::kept(),
            lost => {
                let message = format!("of the background load {lost} inserts that had returned");
                Survival { lost, ..Survival::untold(CutOutcome::Lost, message) }
            }
        })
    }

    /// Its rows, which must be the first ones, each whole.
    fn rows(&self) -> Result<u64, WorkloadError> {
        let path = database_path(&self.directory);
        let connection = sound::open(&path)?;
        let sql =
            "SELECT count(*), coalesce(max(key), 0), coalesce(sum(value = ?1), 0) FROM record";
        let read = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (rows, last, right): (i64, i64, i64) =
            connection.query_row(sql, [value()], read).map_err(failed("read back", &path))?;
        if rows != last || rows != right {
            return Err(self.wrong(format!("holds {right} right rows of {rows}, up to key {last}")));
        }
        Ok(rows.cast_unsigned())
    }

    fn wrong(&self, what: String) -> WorkloadError {
        WorkloadError::Contents { path: database_path(&self.directory), what }
    }
}

#[cfg(test)]
#[path = "sqlite_test.rs"]
mod tests;
