//! The settings of a connection, by PRAGMA, each read back; and the words that they have.

use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use serde_json::{Map, Value};

use super::error::{SqliteError, step_error};
use super::wal::Database;
use crate::record::words;

/// PRAGMAs read back into the configuration, whether set or left at SQLite's default.
const READ_BACK: [&str; 9] = [
    "page_size",
    "journal_mode",
    "synchronous",
    "wal_autocheckpoint",
    "locking_mode",
    "auto_vacuum",
    "secure_delete",
    "temp_store",
    "cache_size",
];

words! {
    /// Whether attached databases get the settings too, or keep SQLite's own: a PRAGMA without a
    /// schema's name is of the main one alone, or of those attached by then
    /// (sqlite.org/pragma.html).
    AttachedSettings { Set = "set", Sqlite = "sqlite" }
}

/// Return the settings that are in force in one database, as an object.
///
/// # Errors
/// If SQLite does not answer.
pub fn read_back(connection: &Connection, database: &Database) -> Result<Value, SqliteError> {
    let mut pragmas = Map::new();
    for pragma in READ_BACK {
        pragmas.insert(pragma.into(), read(connection, database, pragma)?.into());
    }
    Ok(pragmas.into())
}

/// Return one setting that is in force, as text.
///
/// # Errors
/// If SQLite does not answer.
pub fn read(
    connection: &Connection,
    database: &Database,
    pragma: &str,
) -> Result<String, SqliteError> {
    let sql = format!("PRAGMA {}.{pragma}", database.name);
    let text = |row: &rusqlite::Row<'_>| match row.get(0)? {
        SqlValue::Integer(number) => Ok(number.to_string()),
        SqlValue::Text(text) => Ok(text),
        other => Ok(format!("{other:?}")),
    };
    connection.query_row(&sql, [], text).map_err(step_error(&sql, &database.path))
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
    /// The way a checkpoint treats readers and the WAL
    /// (sqlite.org/pragma.html#pragma_wal_checkpoint).
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
    /// The use of free pages (sqlite.org/pragma.html#pragma_auto_vacuum).
    AutoVacuum { None = "none", Full = "full", Incremental = "incremental" }
}
words! {
    /// The place of temporary tables (sqlite.org/pragma.html#pragma_temp_store).
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
