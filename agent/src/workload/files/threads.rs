//! A prepared file workload: a worker for each thread, with its own file or its own directory. One
//! operation with its sync is one transaction.

use serde_json::Value;
use sha2::Sha256;

use super::remains::{FilesLeft, FilesOfThread};
use crate::workload::draw::hash_of;
use crate::workload::error::WorkloadError;
use crate::workload::kind::{ClosedWorkload, Workload};
use crate::workload::ledger::{self, Ledger};
use crate::workload::threads;
use crate::workload::threads::task::{Observer, Plan, Task, Worker};

/// One thread's operations, and what they work on.
pub trait FileTask: Task + Send {
    /// What is really in force, as the kernel reads it back; an object.
    ///
    /// # Errors
    /// If the kernel does not tell.
    fn configuration(&self) -> Result<Value, WorkloadError>;

    /// The hash of its first `performed` operations, not yet finalized.
    ///
    /// # Errors
    /// Never, as settings that have no stream are refused before.
    fn hash(&self, performed: u64) -> Result<Sha256, WorkloadError>;

    /// Closes its files, and says what they shall hold after so many operations.
    fn close(self, performed: u64) -> Box<dyn FilesOfThread>;
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

/// All threads of a prepared file workload.
pub struct FileThreads<T> {
    pub workers: Vec<T>,
    pub plan: Plan,
    pub needs_cold_cache: bool,
    ledgers: Vec<Ledger>,
}

impl<T: FileTask> FileThreads<T> {
    /// Of so many workers, each made by its number.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn new(
        threads: u64,
        plan: Plan,
        needs_cold_cache: bool,
        make: impl Fn(u64) -> Result<T, WorkloadError>,
    ) -> Result<Self, WorkloadError> {
        let workers = (0..threads).map(make).collect::<Result<_, _>>()?;
        Ok(Self { workers, plan, needs_cold_cache, ledgers: Vec::new() })
    }
}

impl<T: FileTask> Workload for FileThreads<T> {
    fn needs_cold_cache(&self) -> bool {
        self.needs_cold_cache
    }

    /// Of the first thread; the others have the same.
    fn configuration(&self) -> Result<Value, WorkloadError> {
        self.workers[0].configuration()
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        threads::run_noting(&mut self.workers, self.plan, observer, &mut self.ledgers)
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { workers, ledgers, .. } = *self;
        let mut hashes = Vec::with_capacity(workers.len());
        let mut left = Vec::with_capacity(workers.len());
        for (worker, ledger) in workers.into_iter().zip(&ledgers) {
            let performed = ledger.performed();
            hashes.push(worker.hash(performed)?);
            left.push(worker.close(performed));
        }
        Ok(ClosedWorkload {
            transactions: ledger::rows(&ledgers),
            operation_hash: hash_of(hashes),
            manifest: Vec::new(),
            incomplete_reasons: Vec::new(),
            remains: Box::new(FilesLeft(left)),
        })
    }
}
