//! The stream of operations: a pure function of settings and seed. Produces keys and values, and
//! the hash by which two streams can be told apart.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use super::WorkloadError;
use crate::case::sqlite::{KeyOrder, SqliteSettings, SqliteWorkload};

/// One row's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The row's INTEGER PRIMARY KEY.
    pub key: i64,
    /// The new value; empty for a delete.
    pub value: String,
}

/// Random keys are drawn below 2^40: wide enough to be sparse. As row ids they are varints, nearly
/// all of 6 bytes (sqlite.org/fileformat2.html, "A variable-length integer").
const RANDOM_KEY_LIMIT: u64 = 1 << 40;

/// All operations of a case: the rows it starts with, then one operation a transaction.
#[derive(Debug)]
pub struct Operations {
    /// Rows inserted before anything is measured.
    pub initial: Vec<Operation>,
    /// One change each: warm-up first.
    pub transactions: Vec<Operation>,
    /// SHA-256 over workload, keys and values in order, in hexadecimal.
    pub hash: String,
}

impl Operations {
    /// Draws the whole stream.
    ///
    /// # Errors
    /// If there are fewer rows than transactions that delete one each, or no row to update.
    pub fn new(settings: &SqliteSettings, seed: u64) -> Result<Self, WorkloadError> {
        let transactions = settings.warmup_transactions + settings.transactions;
        let too_few = match settings.workload {
            SqliteWorkload::Insert => false,
            SqliteWorkload::Update => settings.initial_rows == 0,
            SqliteWorkload::Delete => settings.initial_rows < transactions,
        };
        if too_few {
            return Err(WorkloadError::TooFewRows { rows: settings.initial_rows, transactions });
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let value_bytes = usize::try_from(settings.value_bytes).unwrap_or(usize::MAX);
        let initial: Vec<Operation> = (1..=settings.initial_rows)
            .map(|row| Operation { key: row.cast_signed(), value: text(&mut random, value_bytes) })
            .collect();
        let keys = keys(settings, transactions, &mut random);
        let with_value = settings.workload != SqliteWorkload::Delete;
        let transactions: Vec<Operation> = keys
            .into_iter()
            .map(|key| {
                let value = if with_value { text(&mut random, value_bytes) } else { String::new() };
                Operation { key, value }
            })
            .collect();
        let hash = hash(settings.workload, initial.iter().chain(&transactions));
        Ok(Self { initial, transactions, hash })
    }
}

/// The keys of the transactions, in order.
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
                .take(usize::try_from(count).unwrap_or(usize::MAX))
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
            keys.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            keys
        }
    }
}

/// A uniform number below `limit` by rejection, so that no key is likelier than another.
fn below(random: &mut ChaCha8Rng, limit: u64) -> u64 {
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
fn hash<'a>(workload: SqliteWorkload, operations: impl Iterator<Item = &'a Operation>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(workload.word());
    for operation in operations {
        hasher.update(operation.key.to_le_bytes());
        hasher.update((operation.value.len() as u64).to_le_bytes());
        hasher.update(&operation.value);
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
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
            "bd897dec08fc9868d067b8594436760098264a375f4ab93a4be1b5dd2f908325"
        );
    }

    #[test]
    fn deleting_more_rows_than_there_are_is_refused() {
        let settings =
            SqliteSettings { workload: SqliteWorkload::Delete, initial_rows: 8, ..settings() };
        assert!(Operations::new(&settings, 1).unwrap_err().to_string().contains("8 initial rows"));
    }

    fn any_settings() -> impl Strategy<Value = SqliteSettings> {
        (0..3_u8, any::<bool>(), 0..50_u64, 1..40_u64).prop_map(|(kind, random, extra, count)| {
            SqliteSettings {
                workload: [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete]
                    [kind as usize],
                key_order: if random { KeyOrder::Random } else { KeyOrder::Sequential },
                initial_rows: count + 2 + extra,
                transactions: count,
                ..settings()
            }
        })
    }

    proptest! {
        #[test]
        fn every_operation_can_be_done(settings in any_settings(), seed: u64) {
            let operations = Operations::new(&settings, seed).unwrap();
            prop_assert_eq!(operations.hash, Operations::new(&settings, seed).unwrap().hash);
            let mut rows: BTreeSet<i64> = operations.initial.iter().map(|o| o.key).collect();
            prop_assert_eq!(rows.len() as u64, settings.initial_rows);
            prop_assert_eq!(
                operations.transactions.len() as u64,
                settings.transactions + settings.warmup_transactions
            );
            for operation in operations.transactions {
                let possible = match settings.workload {
                    SqliteWorkload::Insert => rows.insert(operation.key),
                    SqliteWorkload::Update => rows.contains(&operation.key),
                    SqliteWorkload::Delete => rows.remove(&operation.key),
                };
                prop_assert!(possible, "key {}", operation.key);
            }
        }
    }
}
