//! What closed databases must hold: opens each again, runs SQLite's integrity_check, counts rows.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::super::WorkloadError;
use super::databases::failed;
use super::table_name;

/// The closed databases, and how many rows each table of each must hold.
pub struct Remains {
    pub paths: Vec<PathBuf>,
    pub rows: Vec<i64>,
}

impl Remains {
    /// Checks every database.
    ///
    /// # Errors
    /// If SQLite fails, or finds a database damaged or a table of another number of rows.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.paths.iter().try_for_each(|path| self.check_database(path))
    }

    fn check_database(&self, path: &Path) -> Result<(), WorkloadError> {
        let step = failed("integrity_check", path);
        let connection = Connection::open(path).map_err(&step)?;
        let report: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(&step)?;
        if report != "ok" {
            return Err(WorkloadError::Integrity { path: path.into(), report });
        }
        for (number, wanted) in (0..).zip(&self.rows) {
            let (table, wanted) = (table_name(number), *wanted);
            let found: i64 = connection
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .map_err(&step)?;
            if found != wanted {
                return Err(WorkloadError::Rows { path: path.into(), table, found, wanted });
            }
        }
        Ok(())
    }
}
