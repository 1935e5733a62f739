//! Workloads of plain files: writes, reads and name changes. One operation with its sync is one
//! transaction. Each thread has its own file, or its own directory of names.
//!
//! stream -> write, read (through data_file); metadata (leaves names); survived: after a power cut

mod data_file;
mod engine;
mod metadata;
mod names;
mod open_file;
mod read;
mod stream;
mod survived;
mod write;

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::Sha256;

use super::conduct::{self, Observer, Plan, Task, Worker};
use super::ledger::{self, Ledger};
use super::{Finished, Remains, Survived, WorkloadError, hash_of};
use crate::record::{FileMetadataSettings, FileReadSettings, FileWriteSettings};
use metadata::Metadata;
pub use open_file::AlignedBuffer;
use read::Read;
use write::Write;

/// One thread's operations, and what they work on.
trait FileTask: Task + Send {
    /// What is really in force, as the kernel reads it back; an object.
    fn configuration(&self) -> Result<Value, WorkloadError>;

    /// The hash of its first `performed` operations, not yet finalized.
    fn hash(&self, performed: u64) -> Result<Sha256, WorkloadError>;

    /// Closes its files, and says what they shall hold after so many operations.
    fn close(self, performed: u64) -> Box<dyn Check>;
}

impl<T: FileTask> Worker for T {
    type Task<'a>
        = &'a mut T
    where
        T: 'a;

    fn start(&mut self) -> Result<&mut T, WorkloadError> {
        Ok(self)
    }
}

/// What there is to check once nothing is measured any more.
pub trait Check {
    /// Checks that the files are as the operations must have left them.
    ///
    /// # Errors
    /// If they cannot be read, or are not.
    fn check(&self) -> Result<(), WorkloadError>;

    /// What is there after a power cut, before which so many operations had returned, and so many
    /// had begun.
    ///
    /// # Errors
    /// If it cannot be read, or is what no operation left there.
    fn survived(&self, returned: u64, begun: u64) -> Result<Survived, WorkloadError>;
}

/// A worker for each thread, all of one sort.
enum Workers {
    Write(Vec<Write>),
    Read(Vec<Read>),
    Metadata(Vec<Metadata>),
}

/// A prepared workload of files.
pub struct FileOperations {
    workers: Workers,
    plan: Plan,
    cold_cache: bool,
    ledgers: Vec<Ledger>,
}

impl FileOperations {
    /// Makes in `directory` the files to write to.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn write(
        directory: &Path,
        settings: &FileWriteSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        data_file::refuse_large(directory, settings.file_bytes, settings.threads.get())?;
        let worker = |thread| Write::prepare(directory, settings, seed, thread);
        let workers = (0..settings.threads.get()).map(worker).collect::<Result<_, _>>()?;
        let cold_cache = settings.read_percent > 0;
        Ok(Self::new(Workers::Write(workers), settings.plan(), cold_cache))
    }

    /// Makes in `directory` the files to read from.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn read(
        directory: &Path,
        settings: &FileReadSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        data_file::refuse_large(directory, settings.file_bytes, settings.threads.get())?;
        let worker = |thread| Read::prepare(directory, settings, seed, thread);
        let workers = (0..settings.threads.get()).map(worker).collect::<Result<_, _>>()?;
        Ok(Self::new(Workers::Read(workers), settings.plan(), true))
    }

    /// Makes in `directory` the names to change.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn metadata(
        directory: &Path,
        settings: &FileMetadataSettings,
    ) -> Result<Self, WorkloadError> {
        let worker = |thread| Metadata::prepare(directory, settings, thread);
        let workers = (0..settings.threads.get()).map(worker).collect::<Result<_, _>>()?;
        let cold_cache = settings.needs_cold_cache();
        Ok(Self::new(Workers::Metadata(workers), settings.plan(), cold_cache))
    }

    fn new(workers: Workers, plan: Plan, cold_cache: bool) -> Self {
        Self { workers, plan, cold_cache, ledgers: Vec::new() }
    }

    /// Whether it is to find the kernel's caches empty.
    pub fn needs_cold_cache(&self) -> bool {
        self.cold_cache
    }

    /// What is really in force, of the first thread; the others have the same.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        match &self.workers {
            Workers::Write(workers) => workers[0].configuration(),
            Workers::Read(workers) => workers[0].configuration(),
            Workers::Metadata(workers) => workers[0].configuration(),
        }
    }

    /// Runs warm-up and measured operations; leaves no phase open.
    ///
    /// # Errors
    /// If an operation or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        self.ledgers = match &mut self.workers {
            Workers::Write(workers) => conduct::run(workers, self.plan, observer),
            Workers::Read(workers) => conduct::run(workers, self.plan, observer),
            Workers::Metadata(workers) => conduct::run(workers, self.plan, observer),
        }?;
        Ok(())
    }

    /// Closes its files; gives the rows of the transactions table and what to check later.
    ///
    /// # Errors
    /// Never, as settings that have no stream are refused before.
    pub fn close(self) -> Result<Finished, WorkloadError> {
        let (operation_hash, checks) = match self.workers {
            Workers::Write(workers) => close_all(workers, &self.ledgers),
            Workers::Read(workers) => close_all(workers, &self.ledgers),
            Workers::Metadata(workers) => close_all(workers, &self.ledgers),
        }?;
        Ok(Finished {
            transactions: ledger::rows(&self.ledgers),
            operation_hash,
            manifest: Vec::new(),
            incomplete_reasons: Vec::new(),
            remains: Remains::File(checks),
        })
    }
}

/// The hash of all that was performed, and what there is to check.
fn close_all<T: FileTask>(
    workers: Vec<T>,
    ledgers: &[Ledger],
) -> Result<(String, Vec<Box<dyn Check>>), WorkloadError> {
    let mut hashes = Vec::with_capacity(workers.len());
    let mut checks = Vec::with_capacity(workers.len());
    for (worker, ledger) in workers.into_iter().zip(ledgers) {
        let performed = ledger.performed();
        hashes.push(worker.hash(performed)?);
        checks.push(worker.close(performed));
    }
    Ok((hash_of(hashes), checks))
}

/// The name of what a thread has alone: the first thread's is the plain one.
fn own_name(name: &str, thread: u64) -> String {
    if thread == 0 { name.into() } else { format!("{name}-{thread}") }
}

/// Makes an error of a failed step.
pub fn failed<'a, E: Into<std::io::Error>>(
    step: &'a str,
    path: &'a Path,
) -> impl Fn(E) -> WorkloadError + 'a {
    move |source| WorkloadError::File {
        step: step.into(),
        path: PathBuf::from(path),
        source: source.into(),
    }
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
