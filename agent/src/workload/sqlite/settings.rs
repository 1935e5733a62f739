//! The fields of a record whose workload is SQLite's, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::sqlite::options::SqliteOptions;
use crate::sqlite::words::{JournalMode, Synchronous};
use crate::workload::kind::Space;
use crate::workload::threads::plan::Plan;

/// Meaning and range of each stand in jojlab/experiment/fields/sqlite.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct SqliteSettings {
    pub workload: SqliteWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub connections: NonZeroU64,
    pub sharing: Sharing,
    pub initial_rows: u64,
    pub value_bytes: u64,
    pub key_order: KeyOrder,
    pub databases: NonZeroU64,
    pub tables: NonZeroU64,
    pub statements: NonZeroU64,
    pub selects: u64,
    pub interval_us: u64,
    #[serde(flatten)]
    pub options: SqliteOptions,
}

words! {
    /// What each transaction does.
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

impl SqliteSettings {
    /// What there is to do, over all connections.
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

    /// The bytes of all rows, and the databases' files.
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
        Space { bytes: rows.saturating_mul(self.value_bytes + ROW_BYTES), files: databases }
    }

    /// Whether a crash leaves a transaction in all databases or in none. Over several, SQLite needs
    /// a super-journal, which it has neither without rollback journals on disk nor without syncs
    /// (sqlite.org/lang_attach.html; vdbeCommit() in src/vdbeaux.c).
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

    /// A small insert case for tests.
    pub fn settings() -> SqliteSettings {
        SqliteSettings {
            workload: SqliteWorkload::Insert,
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            connections: NonZeroU64::MIN,
            sharing: Sharing::Own,
            initial_rows: 0,
            value_bytes: 100,
            key_order: KeyOrder::Sequential,
            databases: NonZeroU64::MIN,
            tables: NonZeroU64::MIN,
            statements: NonZeroU64::MIN,
            selects: 0,
            interval_us: 0,
            options: options(),
        }
    }
}
