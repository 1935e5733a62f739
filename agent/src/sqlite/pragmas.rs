//! The settings of a connection, by PRAGMA, each read back; and the words that they have.

use rusqlite::Connection;
use rusqlite::types::Value as SqlValue;
use serde_json::{Map, Value};

use super::error::{SqliteError, step_error};
use super::vfs::Vfs;
use super::wal::{self, Database};
use crate::errors::WrongUse;
use crate::record::{Switch, words};

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

/// The settings of every database of a connection, and the VFS that opens them.
#[derive(Debug, Clone, Copy)]
pub struct Pragmas {
    pub vfs: Vfs,
    pub page_size_bytes: u64,
    pub auto_vacuum: AutoVacuum,
    pub locking_mode: LockingMode,
    pub journal_mode: JournalMode,
    pub synchronous: Synchronous,
    pub secure_delete: SecureDelete,
    pub temp_store: TempStore,
    pub attached: AttachedSettings,
    pub database_prefill_bytes: u64,
    pub wal_kept: Switch,
    pub wal_prefill_bytes: u64,
    pub checkpoint_when_closed: Switch,
}

words! {
    /// Whether attached databases get the settings too, or keep SQLite's own: a PRAGMA without a
    /// schema's name is of the main one alone, or of those attached by then
    /// (sqlite.org/pragma.html).
    AttachedSettings { Set = "set", Sqlite = "sqlite" }
}

impl Pragmas {
    /// Return the settings of a database that is synced at every commit, and has SQLite's defaults
    /// else.
    pub fn with_syncs(journal_mode: JournalMode) -> Self {
        Self {
            vfs: Vfs::None,
            page_size_bytes: 4096,
            auto_vacuum: AutoVacuum::None,
            locking_mode: LockingMode::Normal,
            journal_mode,
            synchronous: Synchronous::Full,
            secure_delete: SecureDelete::Off,
            temp_store: TempStore::Default,
            attached: AttachedSettings::Set,
            database_prefill_bytes: 0,
            wal_kept: Switch::Off,
            wal_prefill_bytes: 0,
            checkpoint_when_closed: Switch::On,
        }
    }

    /// Return those databases of a connection that have these settings, main first.
    pub fn databases<'d>(&self, all: &'d [Database]) -> &'d [Database] {
        match self.attached {
            AttachedSettings::Set => all,
            AttachedSettings::Sqlite => &all[..1],
        }
    }

    /// Sets them in one database.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn set(&self, connection: &Connection, database: &Database) -> Result<(), SqliteError> {
        wal::set_chunk(connection, database, self.database_prefill_bytes)?;
        let word = |word: &str| (word.to_string(), word.to_string());
        let level = |word: &str, level: i64| (word.to_string(), level.to_string());
        // The first two shape the file, so they come before anything is written; exclusive locking
        // comes before WAL, which then needs no shared memory (sqlite.org/wal.html#noshm).
        let settings = [
            ("page_size", word(&self.page_size_bytes.to_string())),
            ("auto_vacuum", level(self.auto_vacuum.word(), self.auto_vacuum.level())),
            ("locking_mode", word(self.locking_mode.word())),
            ("journal_mode", word(self.journal_mode.word())),
            ("synchronous", level(self.synchronous.word(), self.synchronous.level())),
            ("secure_delete", level(self.secure_delete.word(), self.secure_delete.level())),
            ("temp_store", level(self.temp_store.word(), self.temp_store.level())),
            // Off, as it is a WAL hook itself (sqlite3WalDefaultHook() in main.c), which ours takes
            // the place of and does the work of where it is asked to.
            ("wal_autocheckpoint", word("0")),
        ];
        for (pragma, (word, wanted)) in settings {
            let sql = format!("PRAGMA {}.{pragma} = {word}", database.name);
            connection.execute_batch(&sql).map_err(step_error(&sql, &database.path))?;
            let found = read(connection, database, pragma)?;
            if found != wanted {
                return Err(SqliteError::WrongUse(WrongUse(format!(
                    "{}: PRAGMA {pragma} reads back {found} where {wanted} was set; SQLite refused \
                     the setting, so the case would measure something else",
                    database.path.display()
                ))));
            }
        }
        if self.journal_mode == JournalMode::Wal && self.wal_kept == Switch::On {
            wal::keep(connection, database)?;
        }
        self.fill_wal(connection, database)
    }

    /// Fills the WAL of one database, where it has one that is to be filled.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn fill_wal(
        &self,
        connection: &Connection,
        database: &Database,
    ) -> Result<(), SqliteError> {
        if self.journal_mode != JournalMode::Wal || self.wal_prefill_bytes == 0 {
            return Ok(());
        }
        wal::fill(connection, database, self.wal_prefill_bytes)
    }
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

fn read(connection: &Connection, database: &Database, pragma: &str) -> Result<String, SqliteError> {
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
