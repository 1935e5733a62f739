//! SQLite transactions. Reads settings and a seed; prepares databases, runs the transactions over
//! one or several connections (a thread each), and returns their times. One transaction changes
//! rows in every database of its connection.

mod databases;
mod history;
mod operations;
mod remains;
mod transactions;

use std::path::Path;

use rusqlite::params;
use serde_json::Value;

use super::conduct::{self, Observer, Worker};
use super::ledger::{self, Ledger};
use super::{Finished, WorkloadError, hash_of};
use crate::record::sqlite::{JournalMode, Sharing, SqliteSettings, Switch};
use crate::sqlite::{batch_atomic_write, randomness, sync_call};
use databases::{Database, Databases, failed};
pub use history::History;
use operations::{Operation, Operations, final_rows, initial_rows};
pub use remains::Remains;
use transactions::Runner;

/// Values of initial rows that go into a WAL before they are copied into the database: else the WAL
/// would grow as large as the database (jojlab/experiment/room.py counts on it).
const WAL_PORTION_BYTES: usize = 64 << 20;

/// Connections to prepared databases, each with its stream of operations.
pub struct Sqlite {
    settings: SqliteSettings,
    connections: Vec<Connection>,
    ledgers: Vec<Ledger>,
}

/// What one thread has.
struct Connection {
    settings: SqliteSettings,
    databases: Databases,
    operations: Operations,
    batch_atomic_commits: i64,
}

impl Worker for Connection {
    type Task<'a> = Runner<'a>;

    fn start(&mut self) -> Result<Runner<'_>, WorkloadError> {
        let Self { settings, databases, operations, batch_atomic_commits } = self;
        Runner::new(databases, settings, operations, batch_atomic_commits)
    }
}

/// The name of a table, by its number from 0.
fn table_name(number: u64) -> String {
    if number == 0 { "record".into() } else { format!("record_{}", number + 1) }
}

impl Sqlite {
    /// Creates main.db, db2.db and so on in `directory`, with their settings and initial rows; for
    /// each further connection main-1.db and so on, unless it shares the first one's.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn prepare(
        directory: &Path,
        case: &SqliteSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        sync_call::choose(case.sync_call);
        batch_atomic_write::choose(case.batch_atomic_write == Switch::On);
        randomness::seed(seed);
        let mut connections: Vec<Connection> = Vec::new();
        for thread in 0..case.connections.get() {
            let operations = Operations::new(case, seed, thread)?;
            let databases = match connections.first() {
                Some(first) if case.sharing == Sharing::Shared => first.databases.share(case)?,
                _ => {
                    let databases = Databases::create(directory, case, thread)?;
                    for database in databases.all() {
                        populate(&databases, database, case, seed, thread)?;
                    }
                    databases
                }
            };
            let (settings, batch_atomic_commits) = (case.clone(), 0);
            connections.push(Connection { settings, databases, operations, batch_atomic_commits });
        }
        Ok(Self { settings: case.clone(), connections, ledgers: Vec::new() })
    }

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If SQLite fails at a step, a checkpoint is not whole, or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        self.ledgers = conduct::run(&mut self.connections, self.settings.plan(), observer)?;
        Ok(())
    }

    /// The configuration in force: PRAGMAs read back, what the agent itself chose, and SQLite's
    /// version and build. Of the first connection; the others have the same.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        let case = &self.settings;
        let mut configuration = self.connections[0].databases.configuration()?;
        configuration["wal_autocheckpoint_pages"] = case.wal_autocheckpoint_pages.into();
        configuration["autocheckpoint"] = case.autocheckpoint.word().into();
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
        let Self { settings, connections, ledgers } = self;
        let performed: Vec<u64> = ledgers.iter().map(Ledger::performed).collect();
        let mut hashes = Vec::with_capacity(connections.len());
        let mut remains: Vec<Remains> = Vec::new();
        let mut batch_atomic_commits = 0;
        for (thread, connection) in connections.into_iter().enumerate() {
            hashes.push(connection.operations.hash(performed[thread])?);
            batch_atomic_commits += connection.batch_atomic_commits;
            let paths = connection.databases.close()?;
            match settings.sharing {
                Sharing::Own => {
                    let rows = final_rows(&settings, &performed[thread..=thread]);
                    remains.push(Remains { paths, rows });
                }
                Sharing::Shared if thread == 0 => {
                    remains.push(Remains { paths, rows: final_rows(&settings, &performed) });
                }
                Sharing::Shared => {}
            }
        }
        Ok(Finished {
            transactions: ledger::rows(&ledgers),
            operation_hash: hash_of(hashes),
            remains: super::Remains::Sqlite(remains),
            manifest: vec![("batch_atomic_commits", batch_atomic_commits.into())],
            incomplete_reasons: Vec::new(),
        })
    }
}

/// Makes the tables of one database, with the rows they start with.
fn populate(
    databases: &Databases,
    database: &Database,
    case: &SqliteSettings,
    seed: u64,
    thread: u64,
) -> Result<(), WorkloadError> {
    let tables: Vec<String> = (0..case.tables.get())
        .map(|number| format!("{}.{}", database.name, table_name(number)))
        .collect();
    for table in &tables {
        let columns = "(key INTEGER PRIMARY KEY, value TEXT NOT NULL)";
        databases.batch(&format!("CREATE TABLE {table} {columns}"), database)?;
    }
    databases.batch("BEGIN", database)?;
    {
        let mut inserts = tables
            .iter()
            .map(|table| format!("INSERT INTO {table} VALUES (?1, ?2)"))
            .map(|sql| databases.statement(&sql, database))
            .collect::<Result<Vec<_>, _>>()?;
        let wal = case.journal_mode == JournalMode::Wal;
        let mut portion_bytes = 0;
        initial_rows(case, seed, thread, |Operation { table, key, value }| {
            let inserted = inserts[*table].execute(params![key, value]);
            inserted.map_err(failed("populate", &database.path))?;
            portion_bytes += value.len();
            if wal && portion_bytes >= WAL_PORTION_BYTES {
                portion_bytes = 0;
                databases.batch("COMMIT", database)?;
                databases.checkpoint(database, "restart")?;
                databases.batch("BEGIN", database)?;
            }
            Ok::<_, WorkloadError>(())
        })?;
    }
    databases.batch("COMMIT", database)?;
    if case.journal_mode == JournalMode::Wal {
        databases.checkpoint(database, "truncate")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
