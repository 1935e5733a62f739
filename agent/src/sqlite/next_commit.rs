//! Does what an app does next with a database that was recovered: one more transaction, a
//! checkpoint, a close and an open. Whoever can read a database need not be able to go on with it.

use std::path::Path;

use super::contents;
use super::error::{SqliteError, failed};
use super::vfs::Vfs;

/// The table that the transaction makes.
const TABLE: &str = "joj_next_commit";

/// Commits once more by the VFS of the app, and has plain SQLite find that after the database was
/// closed.
///
/// # Errors
/// If a step fails, or the row is not there.
pub fn commit_next(path: &Path, vfs: Vfs) -> Result<(), SqliteError> {
    let connection = contents::open_unchecked(path, vfs)?;
    // Beyond what a page has free.
    let sql = format!(
        "BEGIN IMMEDIATE; CREATE TABLE {TABLE}(content); \
         INSERT INTO {TABLE} VALUES (zeroblob(10000)); COMMIT;"
    );
    connection.execute_batch(&sql).map_err(failed("cannot go on: commit once more to", path))?;
    // Of a database without a WAL it says that there is none.
    connection
        .query_row("PRAGMA wal_checkpoint", [], |_| Ok(()))
        .map_err(failed("cannot go on: checkpoint", path))?;
    connection.close().map_err(|(_, error)| failed("cannot go on: close", path)(error))?;
    let sql = format!("SELECT length(content) FROM {TABLE}");
    contents::open_unchecked(path, Vfs::None)?
        .query_row(&sql, [], |row| row.get::<_, i64>(0))
        .map(drop)
        .map_err(failed("cannot go on: read the next commit of", path))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_database_takes_one_more_commit_in_each_journal_mode() {
        for (mode, vfs) in [
            ("delete", Vfs::None),
            ("delete", Vfs::Redo),
            ("truncate", Vfs::None),
            ("persist", Vfs::Redo),
            ("wal", Vfs::Wal),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "journal_mode", mode).unwrap();
            connection.execute_batch("CREATE TABLE t(x)").unwrap();
            drop(connection);
            commit_next(&path, vfs).unwrap();
        }
    }

    #[test]
    fn a_database_that_is_readable_alone_takes_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE t(x)").unwrap();
        // Another connection writes, and does not end.
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = commit_next(&path, Vfs::None).unwrap_err().to_string();
        assert!(error.contains("commit once more to"), "{error}");
    }
}
