//! Seeded workload generators. The same seed gives the same operations on every machine.

pub mod background;
pub mod conduct;
pub mod course;
mod crew;
mod draw;
pub mod file;
mod ledger;
#[cfg(test)]
mod noted_phases;
mod replay;
pub mod sqlite;

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::errors::WrongUse;
use crate::record::WorkloadSettings;
use crate::tables::rows::Transaction;
pub use conduct::Observer;
use file::FileOperations;
use replay::Replay;
use sqlite::Sqlite;

/// A prepared workload, of whichever sort the case names.
pub enum Workload {
    Sqlite(Box<Sqlite>),
    File(Box<FileOperations>),
    Replay(Box<Replay>),
}

impl Workload {
    /// Makes in `directory` what the workload starts from.
    ///
    /// # Errors
    /// If a step fails, or a setting is refused.
    pub fn prepare(
        directory: &Path,
        settings: &WorkloadSettings,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let file = |operations| Ok(Self::File(Box::new(operations)));
        match settings {
            WorkloadSettings::Sqlite(settings) => {
                Ok(Self::Sqlite(Box::new(Sqlite::prepare(directory, settings, seed)?)))
            }
            WorkloadSettings::FileWrite(settings) => {
                file(FileOperations::write(directory, settings, seed)?)
            }
            WorkloadSettings::FileRead(settings) => {
                file(FileOperations::read(directory, settings, seed)?)
            }
            WorkloadSettings::FileMetadata(settings) => {
                file(FileOperations::metadata(directory, settings)?)
            }
            WorkloadSettings::Replay(settings) => {
                Ok(Self::Replay(Box::new(Replay::prepare(directory, settings, seed)?)))
            }
        }
    }

    /// Whether the kernel's caches are to be empty before the first transaction.
    pub fn needs_cold_cache(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            Self::File(file) => file.needs_cold_cache(),
            Self::Replay(_) => true,
        }
    }

    /// The configuration in force, read back where that can be done; an object.
    ///
    /// # Errors
    /// If it cannot be read back.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.configuration(),
            Self::File(file) => file.configuration(),
            Self::Replay(replay) => Ok(replay.configuration()),
        }
    }

    /// Runs warm-up and measured transactions; leaves no phase open.
    ///
    /// # Errors
    /// If a step or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(sqlite) => sqlite.run(observer),
            Self::File(file) => file.run(observer),
            Self::Replay(replay) => replay.run(observer),
        }
    }

    /// Closes its files.
    ///
    /// # Errors
    /// If they cannot be closed.
    pub fn close(self) -> Result<Finished, WorkloadError> {
        match self {
            Self::Sqlite(sqlite) => sqlite.close(),
            Self::File(file) => file.close(),
            Self::Replay(replay) => Ok(replay.close()),
        }
    }
}

/// What a closed workload leaves behind.
pub struct Finished {
    /// The table transactions, in order.
    pub transactions: Vec<Transaction>,
    /// SHA-256 over what was performed, in hexadecimal; of several threads over their hashes.
    pub operation_hash: String,
    /// What the workload alone adds to the manifest.
    pub manifest: Vec<(&'static str, Value)>,
    /// Why not all was done that was asked for; empty where it was.
    pub incomplete_reasons: Vec<String>,
    remains: Remains,
}

/// What a power cut took of operations on files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Survived {
    /// Records and names that are not as the last operation that had returned left them.
    pub lost: u64,
    /// Changes of names that are there by half.
    pub torn: u64,
}

/// What there is to check once nothing is measured any more.
enum Remains {
    Sqlite(Vec<sqlite::Remains>),
    File(Vec<Box<dyn file::Check>>),
    Replay(replay::Ended),
}

impl Finished {
    /// What of the files' operations is there after a power cut; `returned` and `begun` tell how
    /// many of a thread had returned and had begun by then. Nothing where the workload is SQLite's:
    /// its transactions have a History.
    ///
    /// # Errors
    /// If the files cannot be read, or hold what no operation put there.
    pub fn survived(
        &self,
        returned: impl Fn(i64) -> u64,
        begun: impl Fn(i64) -> u64,
    ) -> Result<Survived, WorkloadError> {
        let mut all = Survived::default();
        if let Remains::File(checks) = &self.remains {
            for (thread, check) in (0..).zip(checks) {
                let Survived { lost, torn } = check.survived(returned(thread), begun(thread))?;
                all = Survived { lost: all.lost + lost, torn: all.torn + torn };
            }
        }
        Ok(all)
    }

    /// The databases' files; empty where the workload is not SQLite's.
    pub fn databases(&self) -> Vec<PathBuf> {
        match &self.remains {
            Remains::Sqlite(remains) => remains.iter().flat_map(|it| it.paths.clone()).collect(),
            Remains::File(_) | Remains::Replay(_) => Vec::new(),
        }
    }

    /// Checks that the files hold what the workload put there.
    ///
    /// # Errors
    /// If they cannot be read, are damaged, or hold something else.
    pub fn check(&self) -> Result<(), WorkloadError> {
        match &self.remains {
            Remains::Sqlite(remains) => remains.iter().try_for_each(sqlite::Remains::check),
            Remains::File(remains) => remains.iter().try_for_each(|remains| remains.check()),
            Remains::Replay(ended) => ended.check(),
        }
    }
}

/// The hash of all threads' streams: of one, its own; of several, over their hashes in order.
fn hash_of(threads: Vec<Sha256>) -> String {
    let mut digests = threads.into_iter().map(Sha256::finalize);
    let digest = match (digests.next(), digests.len()) {
        (Some(only), 0) => only,
        (first, _) => {
            first.into_iter().chain(digests).fold(Sha256::new(), Sha256::chain_update).finalize()
        }
    };
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What can go wrong in a workload.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("SQLite, {step} on {path}: {source}")]
    Sqlite { step: String, path: PathBuf, source: rusqlite::Error },
    #[error("{path}: {table} holds {found} rows at the end where {wanted} were due")]
    Rows { path: PathBuf, table: String, found: i64, wanted: i64 },
    #[error("{path} fails SQLite's integrity_check: {report}")]
    Integrity { path: PathBuf, report: String },
    #[error("{step} {path}: {source}")]
    File { step: String, path: PathBuf, source: std::io::Error },
    #[error("{path} {what}")]
    Contents { path: PathBuf, what: String },
    /// The case asks for something impossible.
    #[error("{0}")]
    WrongUse(#[source] WrongUse),
}

impl WorkloadError {
    /// The case asks for something impossible: says what, and the remedy.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::WrongUse(WrongUse(what.into()))
    }

    #[cfg(test)]
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Self::WrongUse(_))
    }
}
