//! The stream of operations on rows, drawn from the seed, and the rows that are there at first.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rusqlite::params;
use sha2::{Digest, Sha256};

use super::settings::{KeyOrder, Sharing, SqliteSettings, SqliteWorkload};
use crate::sqlite::databases::Databases;
use crate::sqlite::error::{SqliteError, step_error};
use crate::sqlite::pragmas::{CheckpointMode, JournalMode};
use crate::sqlite::wal::Database;
use crate::workload::draw::{below, generator};
use crate::workload::error::WorkloadError;

/// One row's change, or a look at one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowOperation {
    /// Number of the table, from 0.
    pub table: usize,
    /// The row's INTEGER PRIMARY KEY.
    pub key: i64,
    /// The new value; empty for a delete and a look.
    pub value: String,
}

/// The work of one transaction in every database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedTransaction {
    /// Rows to look at before the changes.
    pub selects: Vec<RowOperation>,
    pub changes: Vec<RowOperation>,
}

/// Random keys are drawn below 2^40: wide enough to be sparse. As row ids they are varints, nearly
/// all of 6 bytes (sqlite.org/fileformat2.html, "A variable-length integer").
const RANDOM_KEY_LIMIT: u64 = 1 << 40;
/// The generator's streams of initial rows are apart from those of transactions.
const ROWS_STREAM: u64 = 1 << 32;

/// The keys of one table that a thread may change: its own, where several change the same table.
#[derive(Debug)]
struct Keys {
    order: KeyOrder,
    workload: SqliteWorkload,
    rows: u64,
    /// The number of this sharer among `step`: it has every `step`th key.
    offset: u64,
    step: u64,
    drawn: u64,
    /// Random keys inserted so far.
    used: BTreeSet<u64>,
    /// The keys to delete in random order; those drawn come first.
    left: Vec<u64>,
}

impl Keys {
    fn new(settings: &SqliteSettings, thread: u64) -> Self {
        let (rows, step) = (settings.initial_rows, settings.sharers());
        let offset = thread % step;
        let (order, workload) = (settings.key_order, settings.workload);
        let shuffled = (workload, order) == (SqliteWorkload::Delete, KeyOrder::Random);
        let left = if shuffled {
            (offset + 1..=rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect()
        } else {
            Vec::new()
        };
        Self { order, workload, rows, offset, step, drawn: 0, used: BTreeSet::new(), left }
    }

    /// The next key; none when all rows are deleted.
    fn draw(&mut self, random: &mut ChaCha8Rng) -> Option<i64> {
        let Self { rows, offset, step, drawn, .. } = *self;
        self.drawn += 1;
        let nth = offset + step * drawn;
        let key = match (self.workload, self.order) {
            (SqliteWorkload::Insert, KeyOrder::Sequential) => rows + 1 + nth,
            (SqliteWorkload::Insert, KeyOrder::Random) => loop {
                let key = rows + 1 + offset + step * below(random, RANDOM_KEY_LIMIT / step);
                if self.used.insert(key) {
                    break key;
                }
            },
            (SqliteWorkload::Update, KeyOrder::Sequential) => nth % rows + 1,
            (SqliteWorkload::Update, KeyOrder::Random) => below(random, rows) + 1,
            (SqliteWorkload::Delete, KeyOrder::Sequential) => (nth < rows).then_some(nth + 1)?,
            (SqliteWorkload::Delete, KeyOrder::Random) => {
                let first = usize::try_from(drawn).ok()?;
                let left = self.left.len().checked_sub(first).filter(|left| *left > 0)?;
                let other = first + usize::try_from(below(random, left as u64)).ok()?;
                self.left.swap(first, other);
                self.left[first]
            }
        };
        Some(key.cast_signed())
    }
}

/// The transactions of one thread, drawn as they go. Every database gets the same. Changes go
/// round the tables, and so do looks.
#[derive(Debug)]
pub struct Operations {
    settings: SqliteSettings,
    seed: u64,
    thread: u64,
    random: ChaCha8Rng,
    keys: Vec<Keys>,
    change_table: usize,
    select_table: usize,
    performed: u64,
}

impl Operations {
    /// At their beginning.
    ///
    /// # Errors
    /// If a table has fewer rows than are deleted from it, or none to update or look at.
    pub fn new(settings: &SqliteSettings, seed: u64, thread: u64) -> Result<Self, WorkloadError> {
        let connections = settings.connections.get();
        let rows = settings.initial_rows;
        let needed = match (settings.workload, settings.plan().share(thread, connections).count()) {
            (SqliteWorkload::Insert, _) => 0,
            (SqliteWorkload::Delete, Some(transactions)) => {
                changes(settings, transactions, 0).saturating_mul(settings.sharers())
            }
            _ => 1,
        };
        let needed = needed.max(settings.selects.min(1));
        if rows < needed {
            return Err(WorkloadError::refusal(format!(
                "{rows} initial rows in each table, {needed} needed to select, update or delete"
            )));
        }
        let keys = (0..settings.tables.get()).map(|_| Keys::new(settings, thread)).collect();
        let (random, settings) = (generator(seed, thread), settings.clone());
        let (change_table, select_table, performed) = (0, 0, 0);
        Ok(Self { settings, seed, thread, random, keys, change_table, select_table, performed })
    }

    /// Draws the next transaction into `planned`, whose memory is used again.
    ///
    /// # Errors
    /// If all rows have been deleted.
    pub fn draw(&mut self, planned: &mut PlannedTransaction) -> Result<(), WorkloadError> {
        let PlannedTransaction { selects, changes } = planned;
        selects.resize_with(size(self.settings.selects), RowOperation::default);
        changes.resize_with(size(self.settings.statements.get()), RowOperation::default);
        let tables = self.keys.len();
        let value_bytes = match self.settings.workload {
            SqliteWorkload::Delete => 0,
            _ => size(self.settings.value_bytes),
        };
        for select in selects {
            select.table = self.select_table;
            select.key = (below(&mut self.random, self.settings.initial_rows) + 1).cast_signed();
            self.select_table = (self.select_table + 1) % tables;
        }
        for change in changes {
            change.table = self.change_table;
            let key = self.keys[self.change_table].draw(&mut self.random);
            change.key = key.ok_or_else(|| {
                WorkloadError::refusal(format!(
                    "rows to delete ran out after {} operations, before duration_ms had passed; \
                     raise initial_rows or lower duration_ms",
                    self.performed
                ))
            })?;
            draw_text(&mut self.random, value_bytes, &mut change.value);
            self.change_table = (self.change_table + 1) % tables;
        }
        self.performed += 1;
        Ok(())
    }

    /// SHA-256 over workload, initial rows and the first `performed` transactions: tables, keys and
    /// values in order. Lengths are hashed too, so that no two streams run together.
    ///
    /// # Errors
    /// Never, if so many have been drawn.
    pub fn hash(&self, performed: u64) -> Result<Sha256, WorkloadError> {
        let mut hasher = Sha256::new();
        hasher.update(self.settings.workload.word());
        if self.settings.sharing == Sharing::Own || self.thread == 0 {
            let rows = self.settings.initial_rows * self.settings.tables.get();
            hasher.update(rows.to_le_bytes());
            initial_rows(&self.settings, self.seed, self.thread, |row| {
                add(&mut hasher, row);
                Ok::<(), WorkloadError>(())
            })?;
        }
        let mut again = Self::new(&self.settings, self.seed, self.thread)?;
        let mut planned = PlannedTransaction::default();
        for _ in 0..performed {
            again.draw(&mut planned)?;
            for operations in [&planned.selects, &planned.changes] {
                hasher.update((operations.len() as u64).to_le_bytes());
                operations.iter().for_each(|operation| add(&mut hasher, operation));
            }
        }
        Ok(hasher)
    }
}

fn add(hasher: &mut Sha256, operation: &RowOperation) {
    hasher.update((operation.table as u64).to_le_bytes());
    hasher.update(operation.key.to_le_bytes());
    hasher.update((operation.value.len() as u64).to_le_bytes());
    hasher.update(&operation.value);
}

/// Gives every row that a thread's databases start with, table by table.
///
/// # Errors
/// If `take`, which gets each row, fails.
pub fn initial_rows<E>(
    settings: &SqliteSettings,
    seed: u64,
    thread: u64,
    mut take: impl FnMut(&RowOperation) -> Result<(), E>,
) -> Result<(), E> {
    let mut random = generator(seed, ROWS_STREAM + thread);
    let mut row = RowOperation::default();
    for table in 0..size(settings.tables.get()) {
        row.table = table;
        for key in 1..=settings.initial_rows {
            row.key = key.cast_signed();
            draw_text(&mut random, size(settings.value_bytes), &mut row.value);
            take(&row)?;
        }
    }
    Ok(())
}

/// Changes that a thread's `transactions` make in one table, for changes go round the tables.
fn changes(settings: &SqliteSettings, transactions: u64, table: u64) -> u64 {
    let (tables, statements) = (settings.tables.get(), settings.statements.get());
    (transactions.saturating_mul(statements).saturating_add(tables - 1 - table)) / tables
}

/// Rows of each table in the end, after the transactions of each of its threads.
pub fn final_rows(settings: &SqliteSettings, performed: &[u64]) -> Vec<i64> {
    let initial = settings.initial_rows.cast_signed();
    let end = |table| {
        let change: u64 = performed.iter().map(|count| changes(settings, *count, table)).sum();
        match settings.workload {
            SqliteWorkload::Insert => initial + change.cast_signed(),
            SqliteWorkload::Update => initial,
            SqliteWorkload::Delete => initial - change.cast_signed(),
        }
    };
    (0..settings.tables.get()).map(end).collect()
}

/// A count as an index may be.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Makes `text` of `length` lower-case letters, in the memory it has.
fn draw_text(random: &mut ChaCha8Rng, length: usize, text: &mut String) {
    let mut bytes = std::mem::take(text).into_bytes();
    bytes.resize(length, 0);
    random.fill_bytes(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
    *text = String::from_utf8(bytes).unwrap_or_default();
}

/// Values of initial rows that go into a WAL before they are copied into the database: else the WAL
/// would grow as large as the database (jojlab/model/workloads/sqlite.py counts on it).
const WAL_PORTION_BYTES: usize = 64 << 20;

/// The name of a table, by its number from 0.
pub fn table_name(number: u64) -> String {
    if number == 0 { "record".into() } else { format!("record_{}", number + 1) }
}

/// The statement that makes a table.
pub fn create_table(database: &str, table: &str) -> String {
    format!("CREATE TABLE {database}.{table} (key INTEGER PRIMARY KEY, value TEXT NOT NULL)")
}

/// Makes the tables of one database, with the rows they start with.
///
/// # Errors
/// If SQLite fails.
pub fn populate(
    databases: &Databases,
    database: &Database,
    case: &SqliteSettings,
    seed: u64,
    thread: u64,
) -> Result<(), SqliteError> {
    let tables: Vec<String> = (0..case.tables.get()).map(table_name).collect();
    for table in &tables {
        databases.batch(&create_table(&database.name, table), database)?;
    }
    databases.batch("BEGIN", database)?;
    {
        let mut inserts = tables
            .iter()
            .map(|table| format!("INSERT INTO {}.{table} VALUES (?1, ?2)", database.name))
            .map(|sql| databases.statement(&sql, database))
            .collect::<Result<Vec<_>, _>>()?;
        let wal = case.options.journal_mode == JournalMode::Wal;
        let mut portion_bytes = 0;
        initial_rows(case, seed, thread, |RowOperation { table, key, value }| {
            let inserted = inserts[*table].execute(params![key, value]);
            inserted.map_err(step_error("populate", &database.path))?;
            portion_bytes += value.len();
            if wal && portion_bytes >= WAL_PORTION_BYTES {
                portion_bytes = 0;
                databases.batch("COMMIT", database)?;
                databases.checkpoint(database, CheckpointMode::Restart)?;
                databases.batch("BEGIN", database)?;
            }
            Ok::<_, SqliteError>(())
        })?;
    }
    databases.batch("COMMIT", database)?;
    if case.options.journal_mode == JournalMode::Wal {
        databases.checkpoint(database, CheckpointMode::Truncate)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! The streams of operations: golden, possible to the last one, and each thread's its own.

    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;
    use crate::workload::draw::hash_of;
    use crate::workload::sqlite::settings::tests::settings;

    fn transactions(
        settings: &SqliteSettings,
        seed: u64,
        thread: u64,
        count: u64,
    ) -> Vec<PlannedTransaction> {
        let mut operations = Operations::new(settings, seed, thread).unwrap();
        let mut draw = || {
            let mut planned = PlannedTransaction::default();
            operations.draw(&mut planned).unwrap();
            planned
        };
        (0..count).map(|_| draw()).collect()
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let settings = SqliteSettings {
            key_order: KeyOrder::Random,
            initial_rows: 3,
            selects: 1,
            ..settings()
        };
        let hash = |thread| {
            hash_of(vec![Operations::new(&settings, 42, thread).unwrap().hash(9).unwrap()])
        };
        // Golden: another value means that every cached result and published seed is void.
        assert_eq!(hash(0), "b034c693a0128b7802f300ae62c19bf877822b705f89943471916a27720062ec");
        assert_ne!(hash(0), hash(1));
    }

    #[test]
    fn deleting_more_rows_than_there_are_is_refused() {
        let settings =
            SqliteSettings { workload: SqliteWorkload::Delete, initial_rows: 8, ..settings() };
        let refusal = Operations::new(&settings, 1, 0).unwrap_err();
        assert!(refusal.to_string().contains("8 initial rows"), "{refusal}");
        assert!(refusal.is_wrong_use());
    }

    #[test]
    fn a_time_may_outlast_the_rows_to_delete() {
        for key_order in [KeyOrder::Sequential, KeyOrder::Random] {
            let settings = SqliteSettings {
                workload: SqliteWorkload::Delete,
                key_order,
                initial_rows: 8,
                duration_ms: 1,
                ..settings()
            };
            let mut operations = Operations::new(&settings, 1, 0).unwrap();
            let mut planned = PlannedTransaction::default();
            let performed = (0..).take_while(|_| operations.draw(&mut planned).is_ok()).count();
            assert_eq!(performed, 8);
            let error = operations.draw(&mut planned).unwrap_err().to_string();
            assert!(error.contains("rows to delete ran out after 8"), "{error}");
        }
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
        let found = transactions(&settings, 1, 0, 9);
        let tables = |of: &[RowOperation]| of.iter().map(|o| o.table).collect::<Vec<_>>();
        assert_eq!(tables(&found[0].changes), [0, 1, 0]);
        assert_eq!(tables(&found[1].changes), [1, 0, 1]);
        assert_eq!(tables(&found[1].selects), [1]);
        assert_eq!(final_rows(&settings, &[9]), [5 + 14, 5 + 13]);
        assert_eq!(final_rows(&settings, &[4, 5]), [5 + 6 + 8, 5 + 6 + 7]);
    }

    #[test]
    fn a_select_needs_a_row() {
        let settings = SqliteSettings { selects: 2, ..settings() };
        assert!(Operations::new(&settings, 1, 0).unwrap_err().to_string().contains("1 needed"));
    }

    fn number(value: u64) -> NonZeroU64 {
        NonZeroU64::new(value).unwrap()
    }

    fn any_settings() -> impl Strategy<Value = SqliteSettings> {
        let kinds = [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete];
        let counts = (1..40_u64, 1..4_u64, 1..4_u64, 0..3_u64, 0..50_u64, 1..5_u64);
        let switches = (any::<bool>(), any::<bool>());
        (prop::sample::select(kinds.to_vec()), switches, counts).prop_map(
            |(workload, (random, shared), counts)| {
                let (transactions, tables, statements, selects, extra, connections) = counts;
                let of_one = ((transactions + 2).div_ceil(connections) + 1) * statements;
                SqliteSettings {
                    workload,
                    key_order: if random { KeyOrder::Random } else { KeyOrder::Sequential },
                    sharing: if shared { Sharing::Shared } else { Sharing::Own },
                    connections: number(connections),
                    initial_rows: of_one.div_ceil(tables) * connections + extra,
                    transactions,
                    tables: number(tables),
                    statements: number(statements),
                    selects,
                    ..settings()
                }
            },
        )
    }

    /// Does every operation of a group of threads on the same databases, in turns.
    fn perform(settings: &SqliteSettings, seed: u64, threads: &[u64]) -> Result<(), TestCaseError> {
        let mut rows = vec![BTreeSet::new(); size(settings.tables.get())];
        initial_rows(settings, seed, threads[0], |RowOperation { table, key, value }| {
            prop_assert_eq!(value.len(), size(settings.value_bytes));
            prop_assert!(rows[*table].insert(*key));
            Ok(())
        })?;
        prop_assert!(rows.iter().all(|keys| keys.len() as u64 == settings.initial_rows));
        let connections = settings.connections.get();
        let counts: Vec<u64> = threads
            .iter()
            .map(|thread| settings.plan().share(*thread, connections).count().unwrap())
            .collect();
        for (thread, count) in threads.iter().zip(&counts) {
            for PlannedTransaction { selects, changes } in
                transactions(settings, seed, *thread, *count)
            {
                prop_assert_eq!(selects.len() as u64, settings.selects);
                prop_assert_eq!(changes.len() as u64, settings.statements.get());
                for select in selects {
                    prop_assert!((1..=settings.initial_rows.cast_signed()).contains(&select.key));
                }
                for RowOperation { table, key, .. } in changes {
                    let possible = match settings.workload {
                        SqliteWorkload::Insert => rows[table].insert(key),
                        SqliteWorkload::Update => rows[table].contains(&key),
                        SqliteWorkload::Delete => rows[table].remove(&key),
                    };
                    prop_assert!(possible, "key {} of table {}", key, table);
                }
            }
        }
        let left: Vec<i64> = rows.iter().map(|keys| keys.len() as i64).collect();
        prop_assert_eq!(left, final_rows(settings, &counts));
        Ok(())
    }

    proptest! {
        #[test]
        fn every_operation_can_be_done(settings in any_settings(), seed: u64) {
            let threads: Vec<u64> = (0..settings.connections.get()).collect();
            match settings.sharing {
                Sharing::Shared => perform(&settings, seed, &threads)?,
                Sharing::Own => {
                    threads.iter().try_for_each(|one| perform(&settings, seed, &[*one]))?;
                }
            }
            let hash = || Operations::new(&settings, seed, 0).unwrap().hash(1).unwrap();
            prop_assert_eq!(hash_of(vec![hash()]), hash_of(vec![hash()]));
        }
    }
}
