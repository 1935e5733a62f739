//! What is left in the databases, compared with the history of the transactions, which is drawn
//! again from the seed.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;

use super::operations::{
    Operations, PlannedTransaction, RowOperation, create_table, initial_rows, table_name,
};
use super::settings::{SqliteSettings, SqliteWorkload};
use crate::sqlite::contents::{self, ContentsDigest, row_digest, schema_digest};
use crate::sqlite::error::failed;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, DatabaseStates, Progress, Survival, survival};

/// The closed databases of a connection, or of all that shared them.
pub struct DatabasesLeft {
    pub paths: Vec<PathBuf>,
    /// How many rows each table of each must hold.
    pub rows: Vec<i64>,
    /// The thread whose rows they started with.
    pub first: u64,
    /// The thread of each transaction, as they committed.
    pub order: Vec<u64>,
    /// When each of them committed and returned.
    pub times: Vec<(i64, i64)>,
    /// Drawn when it is asked for: it takes a while, and few runs are cut.
    pub states: OnceCell<DatabaseStates>,
}

impl DatabasesLeft {
    fn check(&self, path: &Path) -> Result<(), WorkloadError> {
        let connection = contents::open(path)?;
        for (number, wanted) in (0..).zip(&self.rows) {
            let (table, wanted) = (table_name(number), *wanted);
            let sql = format!("SELECT count(*) FROM {table}");
            let found: i64 =
                connection.query_row(&sql, [], |row| row.get(0)).map_err(failed(&sql, path))?;
            if found != wanted {
                let what =
                    format!("holds {found} rows of {table} at the end where {wanted} were due");
                return Err(WorkloadError::Contents { path: path.into(), what });
            }
        }
        Ok(())
    }

    /// Opens each database, which recovers it, and finds its place in the history.
    fn survived(
        &self,
        settings: &SqliteSettings,
        seed: u64,
        progress: Progress,
    ) -> Result<Survival, WorkloadError> {
        let states = match self.states.get() {
            Some(states) => states,
            None => {
                let states = states(settings, seed, self.first, &self.order)?;
                self.states.get_or_init(|| states)
            }
        };
        let vfs = settings.options.vfs;
        let digest = |path: &PathBuf| Ok((states, contents::closed_digest(path, vfs)?));
        let found: Result<Vec<_>, WorkloadError> = self.paths.iter().map(digest).collect();
        Ok(survival(&found?, progress))
    }
}

/// The closed databases of all connections, and what is needed to draw their transactions again.
pub struct SqliteRemains {
    pub left: Vec<DatabasesLeft>,
    pub settings: SqliteSettings,
    pub seed: u64,
}

impl Remains for SqliteRemains {
    fn check(&self) -> Result<(), WorkloadError> {
        let check = |left: &DatabasesLeft| left.paths.iter().try_for_each(|path| left.check(path));
        self.left.iter().try_for_each(check)
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        for left in &self.left {
            let all = left.order.len() as u64;
            let progress = Progress { returned: all, begun: all };
            let found = left.survived(&self.settings, self.seed, progress)?;
            if found.outcome != CutOutcome::Kept {
                let path = left.paths.first().cloned().unwrap_or_default();
                let what = format!("is not as its {all} transactions leave it: {found:?}");
                return Err(WorkloadError::Contents { path, what });
            }
        }
        Ok(())
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let of_one = |left: &DatabasesLeft| {
            let progress = Progress::from_sharers(left.times.iter().copied(), cut.at_ns);
            left.survived(&self.settings, self.seed, progress)
        };
        self.left.iter().map(of_one).collect()
    }
}

/// The states of each database of a connection, or of several that share them, of which `order`
/// has the thread of every transaction as they committed. `first` is the thread whose rows the
/// databases started with.
///
/// # Errors
/// If the operations cannot be drawn again.
pub fn states(
    settings: &SqliteSettings,
    seed: u64,
    first: u64,
    order: &[u64],
) -> Result<DatabaseStates, WorkloadError> {
    let tables: Vec<String> = (0..settings.tables.get()).map(table_name).collect();
    let digest_of = |row: &RowOperation| {
        let values = [ValueRef::Integer(row.key), ValueRef::Text(row.value.as_bytes())];
        row_digest(&tables[row.table], values)
    };
    let mut rows: BTreeMap<(usize, i64), ContentsDigest> = BTreeMap::new();
    let created: Vec<String> = tables.iter().map(|table| create_table("main", table)).collect();
    let mut digest = schema_digest(&created)?;
    initial_rows(settings, seed, first, |row| {
        let added = digest_of(row);
        rows.insert((row.table, row.key), added);
        digest = digest.wrapping_add(added);
        Ok::<(), WorkloadError>(())
    })?;
    let threads: BTreeSet<u64> = order.iter().copied().collect();
    let operations = |thread| Ok((thread, Operations::new(settings, seed, thread)?));
    let mut operations: BTreeMap<u64, Operations> =
        threads.into_iter().map(operations).collect::<Result<_, WorkloadError>>()?;
    let (mut digests, mut planned) = (vec![digest], PlannedTransaction::default());
    for thread in order {
        let Some(operations) = operations.get_mut(thread) else { continue };
        operations.draw(&mut planned)?;
        for change in &planned.changes {
            let place = (change.table, change.key);
            let before = match settings.workload {
                SqliteWorkload::Delete => rows.remove(&place),
                SqliteWorkload::Insert | SqliteWorkload::Update => {
                    let row = digest_of(change);
                    digest = digest.wrapping_add(row);
                    rows.insert(place, row)
                }
            };
            digest = digest.wrapping_sub(before.unwrap_or(0));
        }
        digests.push(digest);
    }
    Ok(DatabaseStates(digests))
}

#[cfg(test)]
#[path = "history_test.rs"]
mod tests;
