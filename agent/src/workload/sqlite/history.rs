//! What the databases hold after each transaction: reads settings and a seed, draws the operations
//! again, and produces a digest of the contents for every number of transactions.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::ValueRef;

use super::operations::{Operations, PlannedTransaction, RowOperation, initial_rows};
use super::populate::{create_table, table_name};
use super::settings::{SqliteSettings, SqliteWorkload};
use crate::sqlite::contents::{ContentsDigest, of_made_schema, of_row};
use crate::workload::database_states::DatabaseStates;
use crate::workload::error::WorkloadError;

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
        of_row(&tables[row.table], values)
    };
    let mut rows: BTreeMap<(usize, i64), ContentsDigest> = BTreeMap::new();
    let created: Vec<String> = tables.iter().map(|table| create_table("main", table)).collect();
    let mut digest = of_made_schema(&created)?;
    initial_rows(settings, seed, first, |row| {
        let of_row = digest_of(row);
        rows.insert((row.table, row.key), of_row);
        digest = digest.wrapping_add(of_row);
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
