//! The regime: how far the files of databases have grown when transactions are measured
//! (GLOSSARY.md), the checkpoints of a connection, and whether files grew meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::WorkloadError;
use super::ledger::{LedgerEntry, REOPENING};
use super::threads::task::Observer;
use crate::record::{Switch, words};
use crate::sqlite::databases::{self, Databases};
use crate::sqlite::options::{Autocheckpoint, SqliteOptions};
use crate::sqlite::pragmas::JournalMode;
use crate::sqlite::sync_call;
use crate::sqlite::vfs::Vfs;
use crate::sqlite::wal::{self, CommitCheckpoint, Database, FileSize, SharedWal};
use crate::tables::timeline::now_ns;
use crate::workload::ledger::CHECKPOINT;

words! {
    /// The state of growth of files when transactions are measured (GLOSSARY.md, "regime").
    Regime { Fresh = "fresh", Steady = "steady", Reopened = "reopened" }
}

/// Holds what a record says of it.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
pub struct RegimeFields {
    pub regime: Regime,
    pub burst_transactions: NonZeroU64,
}

impl RegimeFields {
    /// Return whether a connection that made so many transactions since it was opened is to be
    /// closed and opened again: after each burst, and at the end for what is left of one, so that
    /// every transaction has its share of the cost.
    pub fn is_reopening_due(&self, in_burst: u64, at_end: bool) -> bool {
        let burst = if at_end { 1 } else { self.burst_transactions.get() };
        self.regime == Regime::Reopened && in_burst >= burst
    }
}

/// Holds what opening a connection again and again did.
#[derive(Debug, Default, Clone, Copy)]
pub struct Reopenings {
    pub count: u64,
    /// WALs that SQLite deleted when it closed their last connection.
    pub wals_deleted: u64,
    /// WALs that it was to delete.
    pub wals_due: u64,
}

impl Reopenings {
    /// Closes and opens the connection, as a row of its own, with the frames that closing copies;
    /// `ready` prepares what the connection had before.
    ///
    /// # Errors
    /// If SQLite fails, and of `ready`.
    pub fn reopen(
        &mut self,
        databases: &mut Databases,
        ready: impl FnOnce(&mut Databases) -> Result<(), WorkloadError>,
    ) -> Result<LedgerEntry, WorkloadError> {
        let (sync_calls, retries) = (sync_call::count(), databases::retries());
        let frames = |databases: &Databases| -> u32 {
            databases.all().iter().map(Database::frames_to_copy).sum()
        };
        let in_wals = frames(databases);
        let begin_ns = now_ns();
        self.wals_deleted += u64::from(databases.reopen()?);
        ready(databases)?;
        self.count += 1;
        self.wals_due += databases.all().len() as u64;
        Ok(LedgerEntry {
            databases: count(databases.all().len()),
            sync_calls: sync_call::count() - sync_calls,
            busy_retries: databases::retries() - retries,
            wal_frames: in_wals - frames(databases),
            return_ns: now_ns(),
            ..LedgerEntry::begin(REOPENING, begin_ns)
        })
    }

    /// Those of another connection too.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.wals_deleted += other.wals_deleted;
        self.wals_due += other.wals_due;
    }
}

/// Return what showed in which regime the transactions ran; an object.
pub fn regime_findings(regime: Regime, grown: &GrownFiles, reopenings: Reopenings) -> Value {
    json!({
        "regime": regime.word(),
        "files": grown.changes(),
        "reopenings": reopenings.count,
        "wals_deleted": reopenings.wals_deleted,
    })
}

/// Return why the measured transactions were not in the regime that was asked for; empty where they
/// were.
pub fn reasons_missed(
    regime: Regime,
    options: &SqliteOptions,
    grown: &GrownFiles,
    Reopenings { wals_deleted, wals_due, .. }: Reopenings,
) -> Vec<String> {
    let has_wal = options.journal_mode == JournalMode::Wal;
    // One of vfs/ keeps a WAL, but where zeros save nothing.
    let is_kept = options.wal_kept == Switch::On || options.has_frames_when_closed();
    let is_deleted = has_wal && options.vfs != Vfs::Wal && !is_kept;
    match regime {
        Regime::Fresh => Vec::new(),
        Regime::Steady => grown.not_steady(has_wal),
        Regime::Reopened if is_deleted && wals_deleted < wals_due => {
            vec![format!(
                "not reopened: {wals_deleted} WALs were deleted where {wals_due} were due"
            )]
        }
        Regime::Reopened => Vec::new(),
    }
}

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

    /// Return whether any is.
    pub fn is_due(&self, at_end: bool) -> bool {
        self.due(at_end).next().is_some()
    }

    /// Copies every WAL that is due back, as a row of its own. Where other connections have it
    /// open, as much of it as they let it, as SQLite does.
    ///
    /// # Errors
    /// If SQLite fails, or leaves frames though nobody reads.
    pub fn make(&self, at_end: bool) -> Result<Option<LedgerEntry>, WorkloadError> {
        let due: Vec<&Database> = self.due(at_end).collect();
        if due.is_empty() {
            return Ok(None);
        }
        let (sync_calls, retries) = (sync_call::count(), databases::retries());
        let begin_ns = now_ns();
        let mut wal_frames = 0;
        for database in &due {
            let mode = self.options.checkpoint_mode;
            wal_frames += match database.is_shared() {
                true => self.databases.checkpoint_beside_others(database, mode)?,
                false => self.databases.checkpoint(database, mode)?,
            };
        }
        Ok(Some(LedgerEntry {
            databases: count(due.len()),
            sync_calls: sync_call::count() - sync_calls,
            busy_retries: databases::retries() - retries,
            wal_frames,
            return_ns: now_ns(),
            ..LedgerEntry::begin(CHECKPOINT, begin_ns)
        }))
    }
}

/// Return what the checkpoints of databases found that several connections have open; an object,
/// null where there are none.
pub fn shared_wal_findings<'d>(
    databases: impl IntoIterator<Item = &'d Database>,
    page_bytes: u64,
) -> Value {
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
pub fn entry_of_checkpoint(made: CommitCheckpoint) -> LedgerEntry {
    let CommitCheckpoint { databases, wal_frames, sync_calls, begin_ns, return_ns } = made;
    LedgerEntry {
        databases,
        wal_frames,
        sync_calls,
        return_ns,
        ..LedgerEntry::begin(CHECKPOINT, begin_ns)
    }
}

/// A length as a column has it.
pub fn count(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// The phase of the measured transactions.
const MEASURED: &str = "commit";

/// Sizes of all files, and by database the number in its WAL's header.
#[derive(Debug, Clone)]
struct Look {
    sizes: Vec<FileSize>,
    sequences: Vec<Option<u32>>,
}

impl Look {
    fn read(databases: &BTreeSet<PathBuf>) -> std::io::Result<Self> {
        let (mut sizes, mut sequences) = (Vec::new(), Vec::new());
        for database in databases {
            sizes.extend(wal::sizes(database)?);
            sequences.push(wal::wal_sequence(database)?);
        }
        Ok(Self { sizes, sequences })
    }
}

/// The databases, and how they were at the begin and the end of the measured part.
#[derive(Debug)]
pub struct GrownFiles {
    databases: BTreeSet<PathBuf>,
    before: Option<Look>,
    after: Option<Look>,
    has_planted_fault: bool,
}

impl GrownFiles {
    /// Watch databases by their paths.
    pub fn new(databases: BTreeSet<PathBuf>, has_planted_fault: bool) -> Self {
        Self { databases, before: None, after: None, has_planted_fault }
    }

    /// Looks when the measured part begins and ends, beside another observer.
    pub fn observe_with<'a>(&'a mut self, observer: &'a mut dyn Observer) -> impl Observer + 'a {
        TwoObservers { grown: self, observer, is_measured: false }
    }

    /// Every file that was there, and the number in each WAL's header, before and after.
    pub fn changes(&self) -> Value {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Value::Null;
        };
        let pairs = before.sizes.iter().zip(&after.sizes);
        let sizes: Vec<Value> = pairs
            .filter(|(one, other)| one.size_bytes + one.blocks + other.size_bytes > 0)
            .map(|(one, other)| {
                json!({
                    "name": one.name,
                    "size_bytes": [one.size_bytes, other.size_bytes],
                    "blocks": [one.blocks, other.blocks],
                })
            })
            .collect();
        let sequences = before.sequences.iter().zip(&after.sequences);
        let sequences: Vec<_> = sequences.filter(|pair| *pair != (&None, &None)).collect();
        json!({ "sizes": sizes, "wal_sequences": sequences })
    }

    /// Return the reasons why the measured part was not steady: a file that grew, a WAL that could
    /// not be overwritten. Empty where it was. A journal that every transaction makes or fills anew
    /// is as large after as before.
    pub fn not_steady(&self, has_wal: bool) -> Vec<String> {
        let (before, after) = match (&self.before, &self.after) {
            (Some(before), Some(after)) => (before, after),
            (Some(_), None) if self.has_planted_fault => {
                let why = "after the error its files could not be looked at";
                return vec![format!("not known whether steady: {why}")];
            }
            _ => return vec!["not steady: no transaction was measured".to_owned()],
        };
        let pairs = before.sizes.iter().zip(&after.sizes);
        let grew = pairs
            .filter(|(one, other)| other.size_bytes > one.size_bytes || other.blocks > one.blocks);
        let mut reasons: Vec<String> = grew
            .map(|(one, other)| {
                format!(
                    "not steady: {} grew in the measured part, from {} to {} bytes and from {} to \
                     {} blocks",
                    one.name, one.size_bytes, other.size_bytes, one.blocks, other.blocks
                )
            })
            .collect();
        let empty = before.sequences.iter().filter(|sequence| sequence.is_none()).count();
        if has_wal && empty > 0 {
            reasons.push(format!("not steady: {empty} databases had no WAL to be overwritten"));
        }
        reasons
    }
}

/// The observer of a run, and ours beside it.
struct TwoObservers<'a> {
    grown: &'a mut GrownFiles,
    observer: &'a mut dyn Observer,
    is_measured: bool,
}

impl Observer for TwoObservers<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        self.is_measured = phase == MEASURED;
        if self.is_measured && self.grown.before.is_none() {
            self.grown.before = Some(Look::read(&self.grown.databases)?);
        }
        self.observer.enter(phase)
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.observer.leave()?;
        if self.is_measured {
            self.grown.after = match Look::read(&self.grown.databases) {
                // XFS shuts down where a write of its log fails, and stat(2) then fails too.
                Err(_) if self.grown.has_planted_fault => None,
                look => Some(look?),
            };
        }
        Ok(())
    }

    fn is_pause_due(&self) -> bool {
        self.observer.is_pause_due()
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.observer.pause()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::options::tests::options;
    use crate::sqlite::pragmas::JournalMode;

    fn open(
        databases: Vec<Database>,
        autocheckpoint: Autocheckpoint,
    ) -> (Databases, SqliteOptions) {
        let mut options = options();
        options.journal_mode = JournalMode::Wal;
        options.wal_autocheckpoint_pages = 10;
        options.autocheckpoint = autocheckpoint;
        (Databases::open(databases, &options).unwrap(), options)
    }

    /// Has a reader keep its transaction open over 30 commits, and end it before 30 more; gives the
    /// frames that were written, those that checkpoints copied, and what is told of the WAL.
    fn run_with_a_reader(autocheckpoint: Autocheckpoint) -> (u32, u32, Value) {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| Database::new("main".into(), folder.path().join(name));
        let (writer, options) = open(vec![of("a.db")], autocheckpoint);
        let main = &writer.all()[0];
        writer.batch("BEGIN; CREATE TABLE t (x); INSERT INTO t VALUES (0); COMMIT", main).unwrap();
        let (mut written, mut copied) = (main.wal_frames(), 0);
        let (reader, _) = open(vec![main.with_name("main")], autocheckpoint);
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
        (written, copied, shared_wal_findings(writer.all(), 4096))
    }

    #[test]
    fn files_that_cannot_be_looked_at_after_a_planted_error_end_no_run() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("main.db");
        let observe = |has_planted_fault| {
            std::fs::create_dir(&main).unwrap();
            let mut grown = GrownFiles::new([main.join("inner.db")].into(), has_planted_fault);
            let mut none = ();
            let mut observer = grown.observe_with(&mut none);
            observer.enter("commit").unwrap();
            // Of a path below a file stat(2) fails, but not for want of a name.
            std::fs::remove_dir(&main).unwrap();
            std::fs::write(&main, "").unwrap();
            let left = observer.leave();
            drop(observer);
            std::fs::remove_file(&main).unwrap();
            (left, grown)
        };
        observe(false).0.unwrap_err();
        let (left, grown) = observe(true);
        left.unwrap();
        let reasons = reasons_missed(Regime::Steady, &options(), &grown, Reopenings::default());
        assert!(reasons[0].starts_with("not known whether steady"), "{reasons:?}");
        assert_eq!(grown.changes(), Value::Null);
    }

    #[test]
    fn a_reader_keeps_the_wal_from_being_begun_anew_and_no_frame_counts_twice() {
        for autocheckpoint in [Autocheckpoint::Workload, Autocheckpoint::Sqlite] {
            let (written, copied, wal) = run_with_a_reader(autocheckpoint);
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
    fn a_database_that_nobody_shares_has_no_findings_of_its_wal() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new("main".into(), folder.path().join("a.db"));
        let (alone, _) = open(vec![database], Autocheckpoint::Sqlite);
        alone.batch("CREATE TABLE t (x)", &alone.all()[0]).unwrap();
        assert_eq!(shared_wal_findings(alone.all(), 4096), Value::Null);
    }
}
