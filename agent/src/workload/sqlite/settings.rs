//! The fields of a record whose workload is SQLite's, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::{Switch, words};
use crate::sqlite::pragmas::Pragmas;
use crate::sqlite::sync_call::SyncChoice;
use crate::sqlite::words::{
    AutoVacuum, CheckpointMode, JournalMode, LockingMode, SecureDelete, Synchronous, TempStore,
};
use crate::workload::kind::Space;
use crate::workload::threads::plan::Plan;

/// Meaning and range of each stand in jojlab/experiment/fields/sqlite.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
    pub journal_mode: JournalMode,
    pub synchronous: Synchronous,
    pub sync_call: SyncChoice,
    pub batch_atomic_write: Switch,
    pub page_size_bytes: u64,
    pub wal_autocheckpoint_pages: u64,
    pub autocheckpoint: Autocheckpoint,
    pub checkpoint_mode: CheckpointMode,
    pub databases: NonZeroU64,
    pub tables: NonZeroU64,
    pub statements: NonZeroU64,
    pub selects: u64,
    pub interval_us: u64,
    pub locking_mode: LockingMode,
    pub secure_delete: SecureDelete,
    pub auto_vacuum: AutoVacuum,
    pub temp_store: TempStore,
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
words! {
    /// Who makes a checkpoint that is due: the workload after the commit, or SQLite inside COMMIT
    /// (sqlite.org/c3ref/wal_autocheckpoint.html).
    Autocheckpoint { Workload = "workload", Sqlite = "sqlite" }
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

    /// How each database is opened.
    pub fn pragmas(&self) -> Pragmas {
        Pragmas {
            page_size_bytes: self.page_size_bytes,
            auto_vacuum: self.auto_vacuum,
            locking_mode: self.locking_mode,
            journal_mode: self.journal_mode,
            synchronous: self.synchronous,
            secure_delete: self.secure_delete,
            temp_store: self.temp_store,
        }
    }

    /// Frames in a WAL that make a checkpoint due; none where none ever does.
    pub fn frame_limit(&self) -> Option<u32> {
        u32::try_from(self.wal_autocheckpoint_pages).ok().filter(|limit| *limit > 0)
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
            || (matches!(self.journal_mode, Delete | Truncate | Persist)
                && self.synchronous != Synchronous::Off)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

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
            journal_mode: JournalMode::Truncate,
            synchronous: Synchronous::Full,
            sync_call: SyncChoice::Fsync,
            batch_atomic_write: Switch::Off,
            page_size_bytes: 4096,
            wal_autocheckpoint_pages: 1000,
            autocheckpoint: Autocheckpoint::Workload,
            checkpoint_mode: CheckpointMode::Passive,
            databases: NonZeroU64::MIN,
            tables: NonZeroU64::MIN,
            statements: NonZeroU64::MIN,
            selects: 0,
            interval_us: 0,
            locking_mode: LockingMode::Normal,
            secure_delete: SecureDelete::Off,
            auto_vacuum: AutoVacuum::None,
            temp_store: TempStore::Default,
        }
    }
}
