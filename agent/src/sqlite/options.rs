//! The options that a workload gives SQLite, whatever its transactions are: the fields of a record
//! that all workloads of SQLite share. Applies them to the process, and opens databases with them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::databases::Databases;
use super::error::SqliteError;
use super::pragmas::{
    AttachedSettings, AutoVacuum, CheckpointMode, JournalMode, LockingMode, Pragmas, SecureDelete,
    Synchronous, TempStore,
};
use super::sync_call::{self, DroppedSync, SyncChoice};
use super::vfs::{self, Vfs};
use super::wal::Database;
use crate::record::{Switch, words};

/// Meaning and range of each stand in jojlab/model/workloads/sqlite.py.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
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
    /// Chooses for this process the sync call, the syncs that are left out, and F2FS's atomic
    /// writes; seeds SQLite's random numbers.
    pub fn apply(&self, seed: u64) {
        sync_call::choose(self.sync_call, self.dropped_sync);
        vfs::choose(self.batch_atomic_write == Switch::On);
        vfs::seed(seed);
    }

    /// Opens the databases of one connection, of which the first is called main.
    ///
    /// # Errors
    /// If SQLite fails, or a PRAGMA reads back another value than was set.
    pub fn open(&self, databases: Vec<Database>) -> Result<Databases, SqliteError> {
        let autocheckpoint_frames = match self.autocheckpoint {
            Autocheckpoint::Workload => None,
            Autocheckpoint::Sqlite => self.frame_limit(),
        };
        Databases::open(databases, &self.pragmas(), autocheckpoint_frames)
    }

    /// Return the pragmas that each database is opened with.
    pub fn pragmas(&self) -> Pragmas {
        Pragmas {
            vfs: self.vfs,
            page_size_bytes: self.page_size_bytes,
            auto_vacuum: self.auto_vacuum,
            locking_mode: self.locking_mode,
            journal_mode: self.journal_mode,
            synchronous: self.synchronous,
            secure_delete: self.secure_delete,
            temp_store: self.temp_store,
            attached: self.attached_settings,
            database_prefill_bytes: self.database_prefill_bytes,
            wal_kept: self.wal_kept,
            wal_prefill_bytes: self.wal_prefill_bytes,
            checkpoint_when_closed: self.checkpoint_when_closed,
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

    /// The configuration of a connection, with what no PRAGMA tells; an object.
    ///
    /// # Errors
    /// If SQLite does not answer.
    pub fn configuration(&self, databases: &Databases) -> Result<Value, SqliteError> {
        let mut configuration = databases.configuration()?;
        configuration["wal_autocheckpoint_pages"] = self.wal_autocheckpoint_pages.into();
        configuration["autocheckpoint"] = self.autocheckpoint.word().into();
        configuration["sync_call"] = self.sync_call.word().into();
        configuration["dropped_sync"] = self.dropped_sync.word().into();
        configuration["batch_atomic_write"] = self.batch_atomic_write.word().into();
        configuration["database_prefill_bytes"] = self.database_prefill_bytes.into();
        configuration["wal_kept"] = self.wal_kept.word().into();
        configuration["wal_prefill_bytes"] = self.wal_prefill_bytes.into();
        configuration["checkpoint_when_closed"] = self.checkpoint_when_closed.word().into();
        configuration["vfs"] = self.vfs.word().into();
        Ok(configuration)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// SQLite's own settings, but for the journal, for tests.
    pub fn options() -> SqliteOptions {
        SqliteOptions {
            journal_mode: JournalMode::Truncate,
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
}
