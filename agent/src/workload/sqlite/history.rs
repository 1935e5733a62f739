//! What the databases hold after each transaction: reads settings and a seed, draws the operations
//! again, and produces a digest of the rows for every number of transactions. A database that is
//! found later is told by its own digest: it is as after so many transactions, or as never.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use super::databases::failed;
use super::operations::{Operations, Planned, initial_rows};
use super::table_name;
use crate::record::sqlite::{SqliteSettings, SqliteWorkload};
use crate::workload::WorkloadError;

/// The sum of all rows' hashes, which any order of rows gives.
type Digest = u64;

/// The digests after 0, 1, 2 ... transactions of one connection.
pub struct History {
    tables: u64,
    digests: Vec<Digest>,
}

impl History {
    /// Of the only connection, which performed so many transactions.
    ///
    /// # Errors
    /// If the operations cannot be drawn again, or there are several connections, whose order
    /// nobody knows.
    pub fn new(
        settings: &SqliteSettings,
        seed: u64,
        performed: u64,
    ) -> Result<Self, WorkloadError> {
        if settings.connections.get() > 1 {
            let what = "connections must be 1: the order of several connections' transactions is \
                        not known";
            return Err(WorkloadError::refused(what));
        }
        let mut rows: BTreeMap<(usize, i64), Digest> = BTreeMap::new();
        initial_rows(settings, seed, 0, |row| {
            rows.insert((row.table, row.key), of_row(row.table, row.key, &row.value));
            Ok::<(), WorkloadError>(())
        })?;
        let mut digest = rows.values().fold(0, |sum: Digest, row| sum.wrapping_add(*row));
        let mut digests = vec![digest];
        let mut operations = Operations::new(settings, seed, 0)?;
        let mut planned = Planned::default();
        for _ in 0..performed {
            operations.draw(&mut planned)?;
            for change in &planned.changes {
                let place = (change.table, change.key);
                let before = match settings.workload {
                    SqliteWorkload::Delete => rows.remove(&place),
                    SqliteWorkload::Insert | SqliteWorkload::Update => {
                        let row = of_row(change.table, change.key, &change.value);
                        digest = digest.wrapping_add(row);
                        rows.insert(place, row)
                    }
                };
                digest = digest.wrapping_sub(before.unwrap_or(0));
            }
            digests.push(digest);
        }
        Ok(Self { tables: settings.tables.get(), digests })
    }

    /// After how many transactions, `most` at most, a database held what it holds now; None: never.
    ///
    /// # Errors
    /// If it is not there, cannot be read, or fails SQLite's integrity_check.
    pub fn find(&self, path: &Path, most: u64) -> Result<Option<u64>, WorkloadError> {
        // Not read-only: the first reader after a crash is the one that recovers.
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(failed("open", path))?;
        let step = failed("integrity_check", path);
        let report: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(&step)?;
        if report != "ok" {
            return Err(WorkloadError::Integrity { path: path.into(), report });
        }
        let mut digest: Digest = 0;
        for table in 0..self.tables {
            let sql = format!("SELECT key, value FROM {}", table_name(table));
            let mut rows = connection.prepare(&sql).map_err(&step)?;
            let mut rows = rows.query([]).map_err(&step)?;
            while let Some(row) = rows.next().map_err(&step)? {
                let (key, value): (i64, String) =
                    row.get(0).and_then(|key| Ok((key, row.get(1)?))).map_err(&step)?;
                let table = usize::try_from(table).unwrap_or(usize::MAX);
                digest = digest.wrapping_add(of_row(table, key, &value));
            }
        }
        let candidates = (0..).zip(&self.digests).take_while(|(number, _)| *number <= most);
        let found = candidates.filter(|(_, candidate)| **candidate == digest).last();
        Ok(found.map(|(number, _)| number))
    }
}

fn of_row(table: usize, key: i64, value: &str) -> Digest {
    let hash = Sha256::new()
        .chain_update((table as u64).to_le_bytes())
        .chain_update(key.to_le_bytes())
        .chain_update(value)
        .finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    Digest::from_le_bytes(first)
}

#[cfg(test)]
#[path = "history_test.rs"]
mod tests;
