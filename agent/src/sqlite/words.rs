//! The words of SQLite's settings, as a record and SQL have them.

use crate::record::words;

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
