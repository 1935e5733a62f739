//! The checkpoints that come due between the transactions of a connection: says which databases
//! are due, copies their WALs back, and gives each as a row of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::sqlite::databases::Databases;
use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
use crate::sqlite::wal::{CommitCheckpoint, Database, SharedWal};
use crate::sqlite::{busy, sync_call};
use crate::tables::timeline::now_ns;
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

    /// Copies every WAL that is due back, as a row of its own. Where other connections have it
    /// open, as much of it as they let it, as SQLite does.
    ///
    /// # Errors
    /// If SQLite fails, or leaves frames though nobody reads.
    pub fn make(&self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        let due: Vec<&Database> = self.due(at_end).collect();
        if due.is_empty() {
            return Ok(None);
        }
        let (sync_calls, retries) = (sync_call::count(), busy::retries());
        let begin_ns = now_ns();
        let mut wal_frames = 0;
        for database in &due {
            let mode = self.options.checkpoint_mode;
            wal_frames += match database.is_shared() {
                true => self.databases.checkpoint_beside_others(database, mode)?,
                false => self.databases.checkpoint(database, mode)?,
            };
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

/// What the checkpoints of databases found that several connections have open; an object, null
/// where there are none.
pub fn found<'d>(databases: impl IntoIterator<Item = &'d Database>, page_bytes: u64) -> Value {
    let by_path: BTreeMap<_, _> = databases.into_iter().map(|it| (&it.path, it)).collect();
    let shared: Vec<_> = by_path.into_values().map(Database::shared_wal).collect();
    let sum = |of: fn(&SharedWal) -> u64| shared.iter().map(of).sum::<u64>();
    let longest = shared.iter().map(|wal| wal.most_frames.cast_unsigned()).max().unwrap_or(0);
    match sum(|wal| wal.checkpoints) {
        0 => Value::Null,
        checkpoints => json!({
            "checkpoints": checkpoints,
            "left_frames": sum(|wal| wal.left_frames),
            "found_longer": sum(|wal| wal.found_longer),
            "longest_frames": longest,
            // A frame has a header of 24 bytes (sqlite.org/fileformat2.html, section 4.1).
            "longest_bytes": longest * (page_bytes + 24),
        }),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::options::tests::options;
    use crate::sqlite::words::JournalMode;

    fn open(
        databases: Vec<Database>,
        autocheckpoint: Autocheckpoint,
    ) -> (Databases, SqliteOptions) {
        let mut options = options();
        options.journal_mode = JournalMode::Wal;
        options.wal_autocheckpoint_pages = 10;
        options.autocheckpoint = autocheckpoint;
        (options.open(databases).unwrap(), options)
    }

    /// Has a reader keep its transaction open over 30 commits, and end it before 30 more; gives the
    /// frames that were written, those that checkpoints copied, and what is told of the WAL.
    fn beside_a_reader(autocheckpoint: Autocheckpoint) -> (u32, u32, Value) {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| Database::new("main".into(), folder.path().join(name));
        let (writer, options) = open(vec![of("a.db")], autocheckpoint);
        let main = &writer.all()[0];
        writer.batch("BEGIN; CREATE TABLE t (x); INSERT INTO t VALUES (0); COMMIT", main).unwrap();
        let (mut written, mut copied) = (main.wal_frames(), 0);
        let (reader, _) = open(vec![main.called("main")], autocheckpoint);
        reader.batch("BEGIN; SELECT count(*) FROM t", &reader.all()[0]).unwrap();
        let checkpoints = Checkpoints { databases: &writer, options: &options };
        for number in 0..60 {
            if number == 30 {
                reader.batch("COMMIT", &reader.all()[0]).unwrap();
            }
            writer.batch("UPDATE t SET x = x + 1", main).unwrap();
            written += 1; // the row's page
            let inside = writer.take_autocheckpoint().map_or(0, |made| made.wal_frames);
            copied += inside + checkpoints.make(false).unwrap().map_or(0, |made| made.wal_frames);
        }
        copied += checkpoints.make(true).unwrap().map_or(0, |made| made.wal_frames);
        (written, copied, found(writer.all(), 4096))
    }

    #[test]
    fn a_reader_keeps_the_wal_from_being_begun_anew_and_no_frame_counts_twice() {
        for autocheckpoint in [Autocheckpoint::Workload, Autocheckpoint::Sqlite] {
            let (written, copied, wal) = beside_a_reader(autocheckpoint);
            // The frames of the schema, and of 30 commits, were all in it at once.
            assert!(wal["longest_frames"].as_u64() >= Some(30), "{wal}");
            assert_eq!(wal["longest_bytes"], wal["longest_frames"].as_u64().unwrap() * 4120);
            // Ten commits or so passed before the first was due; each was from then on.
            assert!(wal["left_frames"].as_u64() >= Some(20), "{wal}");
            assert!(wal["found_longer"].as_u64() >= Some(19), "{wal}");
            assert_eq!(written, copied, "{wal}");
        }
    }

    #[test]
    fn of_a_database_that_nobody_shares_nothing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new("main".into(), folder.path().join("a.db"));
        let (alone, _) = open(vec![database], Autocheckpoint::Sqlite);
        alone.batch("CREATE TABLE t (x)", &alone.all()[0]).unwrap();
        assert_eq!(found(alone.all(), 4096), Value::Null);
    }
}
