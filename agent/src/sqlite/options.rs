//! The options that a workload gives SQLite, whatever its transactions are: the fields of a record
//! that all workloads of SQLite share. Applies them to the process.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::error::{SqliteError, step_error};
use super::pragmas::{
    self, AttachedSettings, AutoVacuum, CheckpointMode, JournalMode, LockingMode, SecureDelete,
    Synchronous, TempStore,
};
use super::sync_call::{self, DroppedSync, SyncChoice};
use super::vfs::{self, Vfs};
use super::wal::{self, Database};
use crate::errors::WrongUse;
use crate::record::{Switch, words};

/// Meaning and range of each stand in jojlab/model/workloads/sqlite.py.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct SqliteOptions {
    pub journal_mode: JournalMode,
    pub synchronous: Synchronous,
    pub sync_call: SyncChoice,
    pub dropped_sync: DroppedSync,
    pub batch_atomic_write: Switch,
    pub page_size_bytes: u64,
    pub wal_autocheckpoint_pages: u64,
    pub autocheckpoint: Autocheckpoint,
    pub checkpoint_mode: CheckpointMode,
    pub locking_mode: LockingMode,
    pub secure_delete: SecureDelete,
    pub auto_vacuum: AutoVacuum,
    pub temp_store: TempStore,
    pub attached_settings: AttachedSettings,
    pub database_prefill_bytes: u64,
    pub wal_kept: Switch,
    pub wal_prefill_bytes: u64,
    pub checkpoint_when_closed: Switch,
    pub vfs: Vfs,
}

words! {
    /// The maker of a checkpoint that is due: the workload after the commit, or SQLite inside
    /// COMMIT (sqlite.org/c3ref/wal_autocheckpoint.html).
    Autocheckpoint { Workload = "workload", Sqlite = "sqlite" }
}

impl SqliteOptions {
    /// Return the options of a database that is synced at every commit, and has SQLite's defaults
    /// else.
    pub fn with_syncs(journal_mode: JournalMode) -> Self {
        Self {
            journal_mode,
            synchronous: Synchronous::Full,
            sync_call: SyncChoice::Fsync,
            dropped_sync: DroppedSync::None,
            batch_atomic_write: Switch::Off,
            page_size_bytes: 4096,
            wal_autocheckpoint_pages: 1000,
            autocheckpoint: Autocheckpoint::Workload,
            checkpoint_mode: CheckpointMode::Passive,
            locking_mode: LockingMode::Normal,
            secure_delete: SecureDelete::Off,
            auto_vacuum: AutoVacuum::None,
            temp_store: TempStore::Default,
            attached_settings: AttachedSettings::Set,
            database_prefill_bytes: 0,
            wal_kept: Switch::Off,
            wal_prefill_bytes: 0,
            checkpoint_when_closed: Switch::On,
            vfs: Vfs::None,
        }
    }

    /// Chooses for this process the sync call, the syncs that are left out, and F2FS's atomic
    /// writes; seeds SQLite's random numbers.
    pub fn apply(&self, seed: u64) {
        sync_call::choose(self.sync_call, self.dropped_sync);
        vfs::choose(self.batch_atomic_write == Switch::On);
        vfs::seed(seed);
    }

    /// Sets the pragmas of one database.
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
            let found = pragmas::read(connection, database, pragma)?;
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

    /// Return those databases of a connection that have these settings, main first.
    pub fn databases<'d>(&self, all: &'d [Database]) -> &'d [Database] {
        match self.attached_settings {
            AttachedSettings::Set => all,
            AttachedSettings::Sqlite => &all[..1],
        }
    }

    /// Return whether the last connection that is closed leaves the frames of a WAL in it.
    pub fn has_frames_when_closed(&self) -> bool {
        self.journal_mode == JournalMode::Wal && self.checkpoint_when_closed == Switch::Off
    }

    /// Frames in a WAL that make a checkpoint due; none where none ever does.
    pub fn frame_limit(&self) -> Option<u32> {
        u32::try_from(self.wal_autocheckpoint_pages).ok().filter(|limit| *limit > 0)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// SQLite's own settings, but for the journal, for tests.
    pub fn options() -> SqliteOptions {
        SqliteOptions::with_syncs(JournalMode::Truncate)
    }
}
