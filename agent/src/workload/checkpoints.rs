//! The checkpoints that come due between the transactions of a connection: says which databases
//! are due, copies their WALs back, and gives each as a row of its own.

use crate::sqlite::databases::Databases;
use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
use crate::sqlite::wal::{CommitCheckpoint, Database};
use crate::sqlite::{busy, sync_call};
use crate::tables::clock::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::ledger::{CHECKPOINT, Done};

/// One connection's.
#[derive(Clone, Copy)]
pub struct Checkpoints<'a> {
    pub databases: &'a Databases,
    pub options: &'a SqliteOptions,
}

impl<'a> Checkpoints<'a> {
    /// The databases whose checkpoint the workload makes now; at the end, whatever is left.
    fn due(&self, at_end: bool) -> impl Iterator<Item = &'a Database> + use<'a> {
        let limit = match self.options.autocheckpoint {
            _ if at_end => 1,
            Autocheckpoint::Workload => self.options.frame_limit().unwrap_or(u32::MAX),
            Autocheckpoint::Sqlite => u32::MAX,
        };
        self.databases.all().iter().filter(move |database| database.frames_to_copy() >= limit)
    }

    /// Whether any is.
    pub fn is_due(&self, at_end: bool) -> bool {
        self.due(at_end).next().is_some()
    }

    /// Copies every WAL that is due back, as a row of its own.
    ///
    /// # Errors
    /// If SQLite fails, or leaves frames.
    pub fn make(&self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        let due: Vec<&Database> = self.due(at_end).collect();
        if due.is_empty() {
            return Ok(None);
        }
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let begin_ns = now_ns();
        let mut wal_frames = 0;
        for database in &due {
            wal_frames += self.databases.checkpoint(database, self.options.checkpoint_mode)?;
        }
        Ok(Some(Done {
            databases: count(due.len()),
            sync_calls: sync_call::count() - sync_calls,
            busy_retries: busy::retries() - retries,
            wal_frames,
            return_ns: now_ns(),
            ..Done::begun(CHECKPOINT, begin_ns)
        }))
    }
}

/// A checkpoint that SQLite made inside a COMMIT, as a row of its own.
pub fn noted(made: CommitCheckpoint) -> Done {
    let CommitCheckpoint { databases, wal_frames, sync_calls, begin_ns, return_ns } = made;
    Done { databases, wal_frames, sync_calls, return_ns, ..Done::begun(CHECKPOINT, begin_ns) }
}

/// A length as a column has it.
pub fn count(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}
