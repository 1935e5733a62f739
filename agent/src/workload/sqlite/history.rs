//! What the databases hold after each transaction: reads settings and a seed, draws the operations
//! again, and produces a digest of the rows for every number of transactions. A database that is
//! found later is told by its own digest: it is as after so many transactions, or as never.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::operations::{Operations, PlannedTransaction, initial_rows};
use super::populate::table_name;
use super::settings::{SqliteSettings, SqliteWorkload};
use crate::sqlite::error::failed;
use crate::sqlite::sound;
use crate::workload::error::WorkloadError;

/// The sum of all rows' hashes, which any order of rows gives.
type Digest = u64;

/// The digests after 0, 1, 2 ... transactions of one connection.
pub struct History {
    tables: u64,
    digests: Vec<Digest>,
}

/// Why there is no one history of the databases.
pub fn refused(settings: &SqliteSettings) -> Option<&'static str> {
    (settings.connections.get() > 1).then_some(
        "connections must be 1: the order of several connections' transactions is not known",
    )
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
        if let Some(reason) = refused(settings) {
            return Err(WorkloadError::refused(reason));
        }
        let mut rows: BTreeMap<(usize, i64), Digest> = BTreeMap::new();
        initial_rows(settings, seed, 0, |row| {
            rows.insert((row.table, row.key), of_row(row.table, row.key, &row.value));
            Ok::<(), WorkloadError>(())
        })?;
        let mut digest = rows.values().fold(0, |sum: Digest, row| sum.wrapping_add(*row));
        let mut digests = vec![digest];
        let mut operations = Operations::new(settings, seed, 0)?;
        let mut planned = PlannedTransaction::default();
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
        let connection = sound::open(path)?;
        let step = failed("read back", path);
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
