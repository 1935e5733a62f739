//! The tables of a database, and the rows that they start with.

use rusqlite::params;

use super::operations::{RowOperation, initial_rows};
use super::settings::SqliteSettings;
use crate::sqlite::databases::Databases;
use crate::sqlite::error::{SqliteError, failed};
use crate::sqlite::wal::Database;
use crate::sqlite::words::{CheckpointMode, JournalMode};

/// Values of initial rows that go into a WAL before they are copied into the database: else the WAL
/// would grow as large as the database (jojlab/model/workloads/sqlite.py counts on it).
const WAL_PORTION_BYTES: usize = 64 << 20;

/// The name of a table, by its number from 0.
pub fn table_name(number: u64) -> String {
    if number == 0 { "record".into() } else { format!("record_{}", number + 1) }
}

/// The statement that makes a table.
pub fn create_table(database: &str, table: &str) -> String {
    format!("CREATE TABLE {database}.{table} (key INTEGER PRIMARY KEY, value TEXT NOT NULL)")
}

/// Makes the tables of one database, with the rows they start with.
///
/// # Errors
/// If SQLite fails.
pub fn populate(
    databases: &Databases,
    database: &Database,
    case: &SqliteSettings,
    seed: u64,
    thread: u64,
) -> Result<(), SqliteError> {
    let tables: Vec<String> = (0..case.tables.get()).map(table_name).collect();
    for table in &tables {
        databases.batch(&create_table(&database.name, table), database)?;
    }
    databases.batch("BEGIN", database)?;
    {
        let mut inserts = tables
            .iter()
            .map(|table| format!("INSERT INTO {}.{table} VALUES (?1, ?2)", database.name))
            .map(|sql| databases.statement(&sql, database))
            .collect::<Result<Vec<_>, _>>()?;
        let wal = case.options.journal_mode == JournalMode::Wal;
        let mut portion_bytes = 0;
        initial_rows(case, seed, thread, |RowOperation { table, key, value }| {
            let inserted = inserts[*table].execute(params![key, value]);
            inserted.map_err(failed("populate", &database.path))?;
            portion_bytes += value.len();
            if wal && portion_bytes >= WAL_PORTION_BYTES {
                portion_bytes = 0;
                databases.batch("COMMIT", database)?;
                databases.checkpoint(database, CheckpointMode::Restart)?;
                databases.batch("BEGIN", database)?;
            }
            Ok::<_, SqliteError>(())
        })?;
    }
    databases.batch("COMMIT", database)?;
    if case.options.journal_mode == JournalMode::Wal {
        databases.checkpoint(database, CheckpointMode::Truncate)?;
    }
    Ok(())
}
