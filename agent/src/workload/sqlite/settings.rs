//! The fields of a record whose workload is SQLite's, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::{Switch, words};
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::pragmas::{JournalMode, Synchronous};
use crate::workload::fault::FaultFields;
use crate::workload::kind::Space;
use crate::workload::regime::RegimeFields;
use crate::workload::threads::task::Plan;

/// Meaning and range of each stand in jojlab/model/workloads/sqlite.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqliteSettings {
    pub workload: SqliteWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    #[serde(flatten)]
    pub regime: RegimeFields,
    pub connections: NonZeroU64,
    pub sharing: Sharing,
    pub initial_rows: u64,
    pub value_bytes: u64,
    pub key_order: KeyOrder,
    pub databases: NonZeroU64,
    pub database_folders: NonZeroU64,
    pub tables: NonZeroU64,
    pub statements: NonZeroU64,
    pub selects: u64,
    pub interval_us: u64,
    pub second_name: Switch,
    #[serde(flatten)]
    pub fault: FaultFields,
    #[serde(flatten)]
    pub options: SqliteOptions,
}

words! {
    /// The operation of each transaction.
    SqliteWorkload {
        Insert = "sqlite-insert", Update = "sqlite-update", Delete = "sqlite-delete",
    }
}
words! {
    /// Whether each connection has databases of its own, or all have the same.
    Sharing { Own = "own", Shared = "shared" }
}
words! {
    /// Order in which keys are inserted, updated or deleted.
    KeyOrder { Sequential = "sequential", Random = "random" }
}

/// Bytes of a row beside its value: record header, key and cell pointer, at the least
/// (sqlite.org/fileformat2.html, "B-tree Pages").
const ROW_BYTES: u64 = 8;
/// Pages that changing a row changes, without those of a long value: see `pages_to_allocate`.
const PAGES_OF_A_ROW: u64 = 6;

impl SqliteSettings {
    /// Return the work that there is to do, over all connections.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// Threads that change the same databases.
    pub fn sharers(&self) -> u64 {
        match self.sharing {
            Sharing::Own => 1,
            Sharing::Shared => self.connections.get(),
        }
    }

    /// The bytes of all rows and of what is filled, and the databases' files.
    pub fn space(&self) -> Space {
        let sets = self.connections.get() / self.sharers();
        let databases = sets.saturating_mul(self.databases.get());
        let initial = self.initial_rows.saturating_mul(self.tables.get());
        let initial = initial.saturating_mul(databases);
        let inserted = match self.workload {
            SqliteWorkload::Insert => self.plan().count().unwrap_or(0),
            SqliteWorkload::Update | SqliteWorkload::Delete => 0,
        };
        let inserted =
            inserted.saturating_mul(self.statements.get()).saturating_mul(self.databases.get());
        let rows = initial.saturating_add(inserted);
        let options = &self.options;
        let filled = options.wal_prefill_bytes.saturating_add(options.database_prefill_bytes);
        let filled = filled.saturating_mul(databases);
        let bytes = rows.saturating_mul(self.value_bytes + ROW_BYTES).saturating_add(filled);
        Space { bytes, files: databases }
    }

    /// Pages of each database, and frames of its WAL or pages of its journal, with which no
    /// transaction needs more: an upper bound, as page splits depend on the keys. Of transactions
    /// that go on for a time, those between two checkpoints.
    pub fn pages_to_allocate(&self) -> u64 {
        let transactions = self.plan().count().unwrap_or(0) * self.sharers();
        let transactions = transactions.div_ceil(self.connections.get());
        let overflow = match self.value_bytes + 2 * ROW_BYTES {
            cell if cell + 2 * ROW_BYTES > self.options.page_size_bytes => {
                cell.div_ceil(self.options.page_size_bytes - 4)
            }
            _ => 0,
        };
        // A row takes its leaf, which may be split in two, their parents, and a page of the list of
        // free ones; a transaction the first page and the schema.
        let in_transaction = self.statements.get() * (overflow + PAGES_OF_A_ROW) + 2;
        let in_database = match self.workload {
            SqliteWorkload::Insert => {
                let rows = transactions * self.statements.get();
                // Leaves are half full at the least.
                let leaves =
                    rows * (self.value_bytes + 2 * ROW_BYTES) * 2 / self.options.page_size_bytes;
                rows * overflow + leaves + self.tables.get() + PAGES_OF_A_ROW
            }
            SqliteWorkload::Update | SqliteWorkload::Delete => 0,
        };
        let in_log = match (self.options.journal_mode, self.options.frame_limit()) {
            (JournalMode::Wal, Some(limit)) => {
                let at_most = u64::from(limit) + in_transaction * (1 + self.sharers());
                let written = transactions * in_transaction;
                match self.duration_ms {
                    // Who writes beside a checkpoint may keep the WAL from being begun anew.
                    0 if self.sharers() > 1 => written,
                    0 => at_most.min(written),
                    _ => at_most,
                }
            }
            (JournalMode::Wal, None) => transactions * in_transaction,
            _ => in_transaction,
        };
        in_database.max(in_log).max(in_transaction)
    }

    /// Return whether a crash leaves a transaction in all databases or in none. Over several,
    /// SQLite needs a super-journal, which it has neither without rollback journals on disk nor
    /// without syncs (sqlite.org/lang_attach.html; vdbeCommit() in src/vdbeaux.c).
    pub fn is_atomic_across_databases(&self) -> bool {
        use JournalMode::{Delete, Persist, Truncate};
        self.databases.get() == 1
            || (matches!(self.options.journal_mode, Delete | Truncate | Persist)
                && self.options.synchronous != Synchronous::Off)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::sqlite::options::tests::options;
    use crate::workload::regime::Regime;

    /// A small insert case for tests.
    pub fn settings() -> SqliteSettings {
        SqliteSettings {
            workload: SqliteWorkload::Insert,
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            regime: RegimeFields { regime: Regime::Fresh, burst_transactions: NonZeroU64::MIN },
            connections: NonZeroU64::MIN,
            sharing: Sharing::Own,
            initial_rows: 0,
            value_bytes: 100,
            key_order: KeyOrder::Sequential,
            databases: NonZeroU64::MIN,
            database_folders: NonZeroU64::MIN,
            tables: NonZeroU64::MIN,
            statements: NonZeroU64::MIN,
            selects: 0,
            interval_us: 0,
            second_name: Switch::Off,
            fault: FaultFields::default(),
            options: options(),
        }
    }
}
