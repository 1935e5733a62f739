//! The stream of operations: a pure function of settings and seed. Produces keys and values, and
//! the hash by which two streams can be told apart.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use super::WorkloadError;
use crate::case::sqlite::{KeyOrder, SqliteSettings, SqliteWorkload};

/// One row's change, or a look at one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Number of the table, from 0.
    pub table: usize,
    /// The row's INTEGER PRIMARY KEY.
    pub key: i64,
    /// The new value; empty for a delete and a look.
    pub value: String,
}

/// What one transaction does in every database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Rows to look at before the changes.
    pub selects: Vec<Operation>,
    pub changes: Vec<Operation>,
}

/// Random keys are drawn below 2^40: wide enough to be sparse. As row ids they are varints, nearly
/// all of 6 bytes (sqlite.org/fileformat2.html, "A variable-length integer").
const RANDOM_KEY_LIMIT: u64 = 1 << 40;

/// All operations of a case: the rows it starts with, then its transactions. Every database gets
/// the same. Changes go round the tables, and so do looks.
#[derive(Debug)]
pub struct Operations {
    /// Rows inserted before anything is measured.
    pub initial: Vec<Operation>,
    /// Warm-up first.
    pub transactions: Vec<Planned>,
    /// Rows of each table in the end.
    pub rows: Vec<i64>,
    /// SHA-256 over workload, tables, keys and values in order, in hexadecimal.
    pub hash: String,
}

impl Operations {
    /// Draws the whole stream.
    ///
    /// # Errors
    /// If a table has fewer rows than are deleted from it, or none to update or look at.
    pub fn new(settings: &SqliteSettings, seed: u64) -> Result<Self, WorkloadError> {
        let shares = shares(settings)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let value_bytes = size(settings.value_bytes);
        let mut initial = Vec::new();
        for table in 0..shares.len() {
            initial.extend((1..=settings.initial_rows).map(|row| Operation {
                table,
                key: row.cast_signed(),
                value: text(&mut random, value_bytes),
            }));
        }
        let mut keys: Vec<_> =
            shares.iter().map(|count| keys(settings, *count, &mut random).into_iter()).collect();
        let with_value = settings.workload != SqliteWorkload::Delete;
        let mut tables = (0..shares.len()).cycle();
        let mut change = |random: &mut ChaCha8Rng| {
            let table = tables.next()?;
            let key = keys[table].next()?;
            let value = if with_value { text(random, value_bytes) } else { String::new() };
            Some(Operation { table, key, value })
        };
        let mut selected_tables = (0..shares.len()).cycle();
        let mut select = |random: &mut ChaCha8Rng| {
            let key = (below(random, settings.initial_rows) + 1).cast_signed();
            Some(Operation { table: selected_tables.next()?, key, value: String::new() })
        };
        let transactions: Vec<Planned> = (0..settings.warmup_transactions + settings.transactions)
            .map(|_| Planned {
                selects: (0..settings.selects).filter_map(|_| select(&mut random)).collect(),
                changes: (0..settings.statements.get())
                    .filter_map(|_| change(&mut random))
                    .collect(),
            })
            .collect();
        let hash = hash(settings.workload, &initial, &transactions);
        Ok(Self { initial, transactions, rows: rows(settings, &shares), hash })
    }
}

/// How many changes each table gets.
fn shares(settings: &SqliteSettings) -> Result<Vec<u64>, WorkloadError> {
    let transactions = settings.warmup_transactions + settings.transactions;
    let changes = transactions.saturating_mul(settings.statements.get());
    let tables = settings.tables.get();
    let shares: Vec<u64> =
        (0..tables).map(|table| (changes + tables - 1 - table) / tables).collect();
    let rows = settings.initial_rows;
    let needed = match settings.workload {
        SqliteWorkload::Insert => 0,
        SqliteWorkload::Update => 1,
        SqliteWorkload::Delete => shares[0],
    };
    let needed = needed.max(settings.selects.min(1));
    if rows < needed {
        return Err(WorkloadError::TooFewRows { rows, needed });
    }
    Ok(shares)
}

/// Rows of each table in the end.
fn rows(settings: &SqliteSettings, shares: &[u64]) -> Vec<i64> {
    let initial = settings.initial_rows.cast_signed();
    let end = |change: &u64| match settings.workload {
        SqliteWorkload::Insert => initial + change.cast_signed(),
        SqliteWorkload::Update => initial,
        SqliteWorkload::Delete => initial - change.cast_signed(),
    };
    shares.iter().map(end).collect()
}

/// A count as an index may be.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The keys of one table's changes, in order.
fn keys(settings: &SqliteSettings, count: u64, random: &mut ChaCha8Rng) -> Vec<i64> {
    let rows = settings.initial_rows;
    match (settings.workload, settings.key_order) {
        (SqliteWorkload::Insert, KeyOrder::Sequential) => {
            (rows + 1..=rows + count).map(u64::cast_signed).collect()
        }
        (SqliteWorkload::Insert, KeyOrder::Random) => {
            let mut used = BTreeSet::new();
            std::iter::repeat_with(|| rows + 1 + below(random, RANDOM_KEY_LIMIT))
                .filter(|key| used.insert(*key))
                .take(size(count))
                .map(u64::cast_signed)
                .collect()
        }
        (SqliteWorkload::Update, KeyOrder::Sequential) => {
            (0..count).map(|index| (index % rows + 1).cast_signed()).collect()
        }
        (SqliteWorkload::Update, KeyOrder::Random) => {
            (0..count).map(|_| (below(random, rows) + 1).cast_signed()).collect()
        }
        (SqliteWorkload::Delete, KeyOrder::Sequential) => {
            (1..=count).map(u64::cast_signed).collect()
        }
        (SqliteWorkload::Delete, KeyOrder::Random) => {
            let mut keys: Vec<i64> = (1..=rows).map(u64::cast_signed).collect();
            for last in (1..keys.len()).rev() {
                let other = below(random, last as u64 + 1);
                keys.swap(last, usize::try_from(other).unwrap_or(last));
            }
            keys.truncate(size(count));
            keys
        }
    }
}

/// A uniform number below `limit` by rejection, so that none is likelier than another.
pub fn below(random: &mut ChaCha8Rng, limit: u64) -> u64 {
    let zone = u64::MAX - u64::MAX % limit;
    loop {
        let drawn = random.next_u64();
        if drawn < zone {
            return drawn % limit;
        }
    }
}

/// `length` lower-case letters.
fn text(random: &mut ChaCha8Rng, length: usize) -> String {
    let mut bytes = vec![0; length];
    random.fill_bytes(&mut bytes);
    bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

/// Hash of a stream; lengths are hashed too, so that no two streams run together.
fn hash(workload: SqliteWorkload, initial: &[Operation], transactions: &[Planned]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(workload.word());
    let mut add = |operations: &[Operation]| {
        hasher.update((operations.len() as u64).to_le_bytes());
        for operation in operations {
            hasher.update((operation.table as u64).to_le_bytes());
            hasher.update(operation.key.to_le_bytes());
            hasher.update((operation.value.len() as u64).to_le_bytes());
            hasher.update(&operation.value);
        }
    };
    add(initial);
    for Planned { selects, changes } in transactions {
        add(selects);
        add(changes);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;
    use crate::case::sqlite::tests::settings;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let settings = SqliteSettings { key_order: KeyOrder::Random, ..settings() };
        let operations = Operations::new(&settings, 42).unwrap();
        // Golden: another value means that every cached result and published seed is void.
        assert_eq!(
            operations.hash,
            "b0996f0fa64cd369eab01d6b1fa7f80e3ce1462ae0bdb4691ea924bbe842ba08"
        );
    }

    #[test]
    fn deleting_more_rows_than_there_are_is_refused() {
        let settings =
            SqliteSettings { workload: SqliteWorkload::Delete, initial_rows: 8, ..settings() };
        assert!(Operations::new(&settings, 1).unwrap_err().to_string().contains("8 initial rows"));
    }

    #[test]
    fn changes_and_selects_go_round_the_tables() {
        let settings = SqliteSettings {
            initial_rows: 5,
            tables: number(2),
            statements: number(3),
            selects: 1,
            ..settings()
        };
        let operations = Operations::new(&settings, 1).unwrap();
        let tables = |of: &[Operation]| of.iter().map(|o| o.table).collect::<Vec<_>>();
        assert_eq!(tables(&operations.transactions[0].changes), [0, 1, 0]);
        assert_eq!(tables(&operations.transactions[1].changes), [1, 0, 1]);
        assert_eq!(tables(&operations.transactions[1].selects), [1]);
        assert_eq!(operations.rows, [5 + 14, 5 + 13]);
    }

    #[test]
    fn a_select_needs_a_row() {
        let settings = SqliteSettings { selects: 2, ..settings() };
        assert!(Operations::new(&settings, 1).unwrap_err().to_string().contains("1 needed"));
    }

    fn number(value: u64) -> NonZeroU64 {
        NonZeroU64::new(value).unwrap()
    }

    fn any_settings() -> impl Strategy<Value = SqliteSettings> {
        let kinds = [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete];
        let counts = (1..40_u64, 1..4_u64, 1..4_u64, 0..3_u64, 0..50_u64);
        (prop::sample::select(kinds.to_vec()), any::<bool>(), counts).prop_map(
            |(workload, random, (transactions, tables, statements, selects, extra))| {
                SqliteSettings {
                    workload,
                    key_order: if random { KeyOrder::Random } else { KeyOrder::Sequential },
                    initial_rows: ((transactions + 2) * statements).div_ceil(tables) + extra,
                    transactions,
                    tables: number(tables),
                    statements: number(statements),
                    selects,
                    ..settings()
                }
            },
        )
    }

    proptest! {
        #[test]
        fn every_operation_can_be_done(settings in any_settings(), seed: u64) {
            let operations = Operations::new(&settings, seed).unwrap();
            prop_assert_eq!(&operations.hash, &Operations::new(&settings, seed).unwrap().hash);
            let tables = size(settings.tables.get());
            let mut rows = vec![BTreeSet::new(); tables];
            for Operation { table, key, .. } in &operations.initial {
                prop_assert!(rows[*table].insert(*key));
            }
            prop_assert!(rows.iter().all(|keys| keys.len() as u64 == settings.initial_rows));
            prop_assert_eq!(
                operations.transactions.len() as u64,
                settings.transactions + settings.warmup_transactions
            );
            for Planned { selects, changes } in operations.transactions {
                prop_assert_eq!(selects.len() as u64, settings.selects);
                prop_assert_eq!(changes.len() as u64, settings.statements.get());
                for select in selects {
                    prop_assert!((1..=settings.initial_rows.cast_signed()).contains(&select.key));
                }
                for Operation { table, key, .. } in changes {
                    let possible = match settings.workload {
                        SqliteWorkload::Insert => rows[table].insert(key),
                        SqliteWorkload::Update => rows[table].contains(&key),
                        SqliteWorkload::Delete => rows[table].remove(&key),
                    };
                    prop_assert!(possible, "key {} of table {}", key, table);
                }
            }
            let left: Vec<i64> = rows.iter().map(|keys| keys.len() as i64).collect();
            prop_assert_eq!(left, operations.rows);
        }
    }
}
