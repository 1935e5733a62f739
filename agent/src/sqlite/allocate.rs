//! Makes a database's files as large as they will need to be, so that later transactions write in
//! place: the pages of a table that comes and goes stay in the database as free ones, in the WAL as
//! frames to be overwritten, and in a rollback journal that persists.

use super::databases::Databases;
use super::error::SqliteError;
use super::wal::Database;
use super::words::{CheckpointMode, JournalMode};

/// Gives the database `pages` free pages, its WAL as many frames at least, and its rollback
/// journal, where it persists, as many pages. The WAL is copied back, and then begun anew.
///
/// # Errors
/// If SQLite fails.
pub fn allocate(
    databases: &Databases,
    database: &Database,
    journal_mode: JournalMode,
    page_size_bytes: u64,
    pages: u64,
) -> Result<(), SqliteError> {
    let table = format!("{}.allocated", database.name);
    // A row a page: the rest of a page is too small for another, and no page is left out of the
    // journal, as those of one long value would be (sqlite3PagerDontWrite() in src/pager.c).
    let value_bytes = page_size_bytes * 3 / 4;
    let rows = format!(
        "WITH RECURSIVE counted(number) AS \
         (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < {pages}) "
    );
    let run = |sql: &str| databases.batch(sql, database);
    run(&format!("CREATE TABLE {table} (key INTEGER PRIMARY KEY, value BLOB NOT NULL)"))?;
    run(&format!(
        "INSERT INTO {table} SELECT number, value FROM ({rows} \
         SELECT number, zeroblob({value_bytes}) AS value FROM counted)"
    ))?;
    match journal_mode {
        JournalMode::Wal => {
            databases.checkpoint(database, CheckpointMode::Passive)?;
        }
        // A length of its own, so that no page stays as it is.
        JournalMode::Persist => {
            run(&format!("UPDATE {table} SET value = zeroblob({})", value_bytes - 1))?;
        }
        _ => {}
    }
    // In a WAL, this is the transaction that begins it anew.
    run(&format!("DROP TABLE {table}"))
}
