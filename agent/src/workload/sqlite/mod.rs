//! SQLite transactions: reads settings and a seed; prepares databases, runs the transactions, and
//! gives their times. One transaction changes rows in every database.

mod databases;
mod randomness;
mod remains;
mod transactions;

use std::path::Path;

use rusqlite::params;
use serde_json::Value;

use super::operations::{Operation, Operations};
use super::{Finished, Observer, WorkloadError, batch_atomic_write, sync_call};
use crate::case::sqlite::{JournalMode, SqliteSettings, Switch};
use crate::trace::rows::Transaction;
use databases::{Database, Databases, failed};
pub use remains::Remains;
use transactions::Runner;

/// Prepared databases with their stream of operations.
pub struct Sqlite {
    databases: Databases,
    settings: SqliteSettings,
    operations: Operations,
    transactions: Vec<Transaction>,
}

/// The name of a table, by its number from 0.
fn table_name(number: u64) -> String {
    if number == 0 { "record".into() } else { format!("record_{}", number + 1) }
}

impl Sqlite {
    /// Creates main.db, db2.db and so on in `directory`, with their settings and initial rows.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn prepare(directory: &Path, case: &SqliteSettings, seed: u64) -> anyhow::Result<Self> {
        sync_call::choose(case.sync_call);
        batch_atomic_write::choose(case.batch_atomic_write == Switch::On);
        randomness::seed(seed);
        let operations = Operations::new(case, seed)?;
        let databases = Databases::create(directory, case)?;
        let sqlite = Self { databases, settings: case.clone(), operations, transactions: vec![] };
        for database in sqlite.databases.all() {
            sqlite.populate(database)?;
        }
        Ok(sqlite)
    }

    fn populate(&self, database: &Database) -> anyhow::Result<()> {
        let tables: Vec<String> = (0..self.settings.tables.get())
            .map(|number| format!("{}.{}", database.name, table_name(number)))
            .collect();
        for table in &tables {
            let columns = "(key INTEGER PRIMARY KEY, value TEXT NOT NULL)";
            self.databases.batch(&format!("CREATE TABLE {table} {columns}"), database)?;
        }
        self.databases.batch("BEGIN", database)?;
        {
            let mut inserts = tables
                .iter()
                .map(|table| format!("INSERT INTO {table} VALUES (?1, ?2)"))
                .map(|sql| self.databases.statement(&sql, database))
                .collect::<Result<Vec<_>, _>>()?;
            for Operation { table, key, value } in &self.operations.initial {
                inserts[*table]
                    .execute(params![key, value])
                    .map_err(failed("populate", &database.path))?;
            }
        }
        self.databases.batch("COMMIT", database)?;
        if self.settings.journal_mode == JournalMode::Wal {
            self.databases.checkpoint(database, "truncate")?;
        }
        Ok(())
    }

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If SQLite fails at a step, a checkpoint is not whole, or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        let runner = Runner::new(&self.databases, &self.settings)?;
        self.transactions = runner.run(&self.operations.transactions, observer)?;
        Ok(())
    }

    /// The configuration in force: PRAGMAs read back, what the agent itself chose, and SQLite's
    /// version and build.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        let case = &self.settings;
        let mut configuration = self.databases.configuration()?;
        configuration["wal_autocheckpoint_pages"] = case.wal_autocheckpoint_pages.into();
        configuration["sync_call"] = case.sync_call.word().into();
        configuration["batch_atomic_write"] = case.batch_atomic_write.word().into();
        configuration["atomic_across_databases"] = case.is_atomic_across_databases().into();
        Ok(configuration)
    }

    /// Closes the databases; gives the rows of the transactions table and what to check later.
    ///
    /// # Errors
    /// If SQLite cannot close them.
    pub fn close(self) -> Result<Finished, WorkloadError> {
        let Self { databases, transactions, operations, .. } = self;
        let Operations { rows, hash, .. } = operations;
        Ok(Finished {
            transactions,
            operation_hash: hash,
            remains: super::Remains::Sqlite(Remains { paths: databases.close()?, rows }),
            manifest: vec![("batch_atomic_commits", batch_atomic_write::commits().into())],
        })
    }
}

#[cfg(test)]
mod tests;
