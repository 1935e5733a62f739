//! Workloads of plain files: writes, reads and changes of names. One operation, with what makes it
//! durable, is one transaction. This file drives them: phases, times, and the transactions table.
//!
//! stream -> write, read (through data_file); metadata

mod data_file;
mod metadata;
mod open_file;
mod read;
mod stream;
mod write;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Finished, Observer, Remains, WorkloadError};
use crate::case::{FileMetadataSettings, FileReadSettings, FileWriteSettings};
use crate::trace::rows::Transaction;

/// What one operation tells of itself.
struct Performed {
    /// When the change was made and the wait for its durability began.
    commit_ns: i64,
    /// Calls that made something durable.
    sync_calls: i64,
}

/// One sort of operation, and what it works on.
trait Step {
    /// Its word in the transactions table.
    fn verb(&self) -> &'static str;

    /// Gets ready what operation `index` needs; no part of its time.
    fn get_ready(&mut self, index: u64) -> Result<(), WorkloadError>;

    /// Does operation `index`. `now_ns` is the clock.
    fn perform(&mut self, index: u64, now_ns: &dyn Fn() -> i64)
    -> Result<Performed, WorkloadError>;

    /// What is really in force, as the kernel reads it back; an object.
    fn configuration(&self) -> Result<Value, WorkloadError>;

    /// Closes its files, and says what they shall hold.
    fn close(self: Box<Self>) -> Box<dyn Check>;
}

/// What there is to check once nothing is measured any more.
pub trait Check {
    /// Checks that the files are as the operations must have left them.
    ///
    /// # Errors
    /// If they cannot be read, or are not.
    fn check(&self) -> Result<(), WorkloadError>;
}

/// A prepared workload of files.
pub struct FileOperations {
    step: Box<dyn Step>,
    warmup: u64,
    operations: u64,
    operation_hash: String,
    cold_cache: bool,
    transactions: Vec<Transaction>,
}

impl FileOperations {
    /// Makes in `directory` the file to write to.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn write(
        directory: &Path,
        settings: &FileWriteSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let (step, operation_hash) = write::Write::prepare(directory, settings, seed)?;
        Ok(Self {
            step: Box::new(step),
            warmup: settings.warmup_transactions,
            operations: settings.warmup_transactions + settings.transactions,
            operation_hash,
            cold_cache: false,
            transactions: Vec::new(),
        })
    }

    /// Makes in `directory` the file to read from.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn read(
        directory: &Path,
        settings: &FileReadSettings,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let (step, operation_hash) = read::Read::prepare(directory, settings, seed)?;
        Ok(Self {
            step: Box::new(step),
            warmup: settings.warmup_transactions,
            operations: settings.warmup_transactions + settings.transactions,
            operation_hash,
            cold_cache: true,
            transactions: Vec::new(),
        })
    }

    /// Makes in `directory` the names to change.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn metadata(
        directory: &Path,
        settings: &FileMetadataSettings,
    ) -> Result<Self, WorkloadError> {
        let (step, operation_hash) = metadata::Metadata::prepare(directory, settings)?;
        let cold_cache = step.needs_cold_cache();
        Ok(Self {
            step: Box::new(step),
            warmup: settings.warmup_transactions,
            operations: settings.warmup_transactions + settings.transactions,
            operation_hash,
            cold_cache,
            transactions: Vec::new(),
        })
    }

    /// Whether it is to find the kernel's caches empty.
    pub fn needs_cold_cache(&self) -> bool {
        self.cold_cache
    }

    /// What is really in force.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn configuration(&self) -> Result<Value, WorkloadError> {
        self.step.configuration()
    }

    /// Runs warm-up and measured operations; leaves no phase open.
    ///
    /// # Errors
    /// If an operation or the observer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> anyhow::Result<()> {
        self.run_phase("warm-up", 0..self.warmup, observer)?;
        self.run_phase("commit", self.warmup..self.operations, observer)
    }

    fn run_phase(
        &mut self,
        phase: &'static str,
        operations: std::ops::Range<u64>,
        observer: &mut impl Observer,
    ) -> anyhow::Result<()> {
        if operations.is_empty() {
            return Ok(());
        }
        observer.enter(phase)?;
        for index in operations {
            self.step.get_ready(index)?;
            let now_ns = || observer.now_ns();
            let begin_ns = now_ns();
            let performed = self.step.perform(index, &now_ns)?;
            let return_ns = now_ns();
            self.transactions.push(Transaction {
                transaction_id: index.cast_signed(),
                phase: phase.into(),
                kind: self.step.verb().into(),
                begin_ns,
                commit_ns: performed.commit_ns,
                return_ns,
                sync_calls: performed.sync_calls,
                ..Transaction::default()
            });
            observer.between_transactions()?;
        }
        observer.leave()
    }

    /// Closes its files; gives the rows of the transactions table and what to check later.
    pub fn close(self) -> Finished {
        Finished {
            transactions: self.transactions,
            operation_hash: self.operation_hash,
            manifest: Vec::new(),
            remains: Remains::File(self.step.close()),
        }
    }
}

/// Makes an error of a failed step.
fn failed<'a, E: Into<std::io::Error>>(
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
