//! Whether a closed database is sound: opens it again, which recovers it where a crash left a
//! journal, and runs SQLite's integrity_check.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::error::{SqliteError, failed};

/// A connection to an existing database that passes integrity_check.
///
/// # Errors
/// If it is not there, cannot be read, or does not pass.
pub fn open(path: &Path) -> Result<Connection, SqliteError> {
    // Not read-only: the first reader after a crash is the one that recovers.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(failed("open", path))?;
    let report: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .map_err(failed("integrity_check", path))?;
    if report == "ok" {
        return Ok(connection);
    }
    Err(SqliteError::Integrity { path: path.into(), report })
}
