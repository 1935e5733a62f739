//! The fields of a case whose workload is SQLite's: one struct, and the words its fields may have.

use serde::{Deserialize, Serialize};

use super::words;

/// Meaning and range of each stand in jojlab/experiment/fields.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SqliteSettings {
    pub workload: SqliteWorkload,
    pub transactions: u64,
    pub warmup_transactions: u64,
    pub initial_rows: u64,
    pub value_bytes: u64,
    pub key_order: KeyOrder,
    pub journal_mode: JournalMode,
    pub synchronous: Synchronous,
    pub sync_call: SyncCall,
    pub batch_atomic_write: Switch,
    pub page_size_bytes: u64,
    pub wal_autocheckpoint_pages: u64,
}

words! {
    /// What each transaction does.
    SqliteWorkload {
        Insert = "sqlite-insert", Update = "sqlite-update", Delete = "sqlite-delete",
    }
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
    /// Something that is on or off.
    Switch { On = "on", Off = "off" }
}
words! {
    /// The system call by which SQLite makes a file or a directory durable.
    SyncCall { Fsync = "fsync", Fdatasync = "fdatasync" }
}

impl SqliteWorkload {
    /// The verb of its transactions, as in the transactions table.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl Synchronous {
    /// The number `PRAGMA synchronous` reads back.
    pub fn level(self) -> i64 {
        match self {
            Self::Off => 0,
            Self::Normal => 1,
            Self::Full => 2,
            Self::Extra => 3,
        }
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
            warmup_transactions: 2,
            initial_rows: 0,
            value_bytes: 100,
            key_order: KeyOrder::Sequential,
            journal_mode: JournalMode::Truncate,
            synchronous: Synchronous::Full,
            sync_call: SyncCall::Fsync,
            batch_atomic_write: Switch::Off,
            page_size_bytes: 4096,
            wal_autocheckpoint_pages: 1000,
        }
    }
}
