//! The fields of a case whose workload is SQLite's: one struct, and the words its fields may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::words;

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
    pub sync_call: SyncCall,
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
    /// SQLite's journal modes (sqlite.org/pragma.html#pragma_journal_mode).
    JournalMode {
        Delete = "delete", Truncate = "truncate", Persist = "persist",
        Memory = "memory", Wal = "wal", Off = "off",
    }
}
words! {
    /// SQLite's synchronous settings (sqlite.org/pragma.html#pragma_synchronous).
    Synchronous { Off = "off", Normal = "normal", Full = "full", Extra = "extra" }
}
words! {
    /// Who makes a checkpoint that is due: the workload after the commit, or SQLite inside COMMIT
    /// (sqlite.org/c3ref/wal_autocheckpoint.html).
    Autocheckpoint { Workload = "workload", Sqlite = "sqlite" }
}
words! {
    /// How a checkpoint treats readers and the WAL (sqlite.org/pragma.html#pragma_wal_checkpoint).
    CheckpointMode {
        Passive = "passive", Full = "full", Restart = "restart", Truncate = "truncate",
    }
}
words! {
    /// Whether locks outlive a transaction (sqlite.org/pragma.html#pragma_locking_mode).
    LockingMode { Normal = "normal", Exclusive = "exclusive" }
}
words! {
    /// Whether deleted rows are overwritten with zeroes; `fast` does so only where that costs no
    /// I/O (sqlite.org/pragma.html#pragma_secure_delete).
    SecureDelete { Off = "off", On = "on", Fast = "fast" }
}
words! {
    /// What becomes of free pages (sqlite.org/pragma.html#pragma_auto_vacuum).
    AutoVacuum { None = "none", Full = "full", Incremental = "incremental" }
}
words! {
    /// Where temporary tables are kept (sqlite.org/pragma.html#pragma_temp_store).
    TempStore { Default = "default", File = "file", Memory = "memory" }
}
words! {
    /// Something that is on or off.
    Switch { On = "on", Off = "off" }
}
words! {
    /// The system call by which SQLite makes a file or a directory durable.
    SyncCall { Fsync = "fsync", Fdatasync = "fdatasync" }
}

/// For settings whose PRAGMA takes a word and reads back a number: words are listed in its order.
macro_rules! levels {
    ($($name:ident),+) => {
        $(impl $name {
            /// The number that the PRAGMA reads back.
            pub fn level(self) -> i64 {
                self as i64
            }
        })+
    };
}
levels!(Synchronous, SecureDelete, AutoVacuum, TempStore);

impl SqliteSettings {
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
pub(crate) mod tests {
    use super::*;

    /// A small insert case for tests.
    pub(crate) fn settings() -> SqliteSettings {
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
            sync_call: SyncCall::Fsync,
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
