//! The parts that workloads of plain files share: the stream of records, the file that holds them,
//! how an operation reaches the kernel, and the threads that run it.
//!
//! stream; engine: how an operation reaches the kernel; remains: what a power cut left of the file;
//! here: the threads, and runs for tests

pub mod engine;
pub mod remains;
pub mod stream;

use remains::{FilesLeft, FilesOfThread};
use serde_json::Value;
use sha2::Sha256;

use crate::workload::draw::hash_of;
use crate::workload::error::WorkloadError;
use crate::workload::kind::{ClosedWorkload, Workload};
use crate::workload::ledger::Ledger;
use crate::workload::threads::task::{Observer, Plan, Task};
use crate::workload::{ledger, threads};

// A prepared file workload: a worker for each thread, with its own file or its own directory. One
// operation with its sync is one transaction.

/// One thread's operations, and what they work on.
pub trait FileTask: Task {
    /// Return what is really in force, as the kernel reads it back; an object.
    ///
    /// # Errors
    /// If the kernel does not tell.
    fn configuration(&self) -> Result<Value, WorkloadError>;

    /// The hash of its first `performed` operations, not yet finalized.
    fn hash(&self, performed: u64) -> Sha256;

    /// Closes its files, and says what they shall hold after so many operations.
    fn close(self, performed: u64) -> Box<dyn FilesOfThread>;
}

/// All threads of a prepared file workload.
pub struct FileThreads<T> {
    pub workers: Vec<T>,
    pub plan: Plan,
    pub needs_cold_cache: bool,
    ledgers: Vec<Ledger>,
}

impl<T: FileTask> FileThreads<T> {
    /// Make so many workers, each by its number.
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

    /// Return the configuration of the first thread; the others have the same.
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
            let performed = ledger.transactions();
            hashes.push(worker.hash(performed));
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

#[cfg(test)]
pub mod watched {
    // Runs file workloads for tests, and compares what they say with the kernel's own count of
    // bytes and calls.
    use std::collections::BTreeMap;

    use crate::workload::error::WorkloadError;
    use crate::workload::kind::{ClosedWorkload, Workload, WorkloadRequest};
    use crate::workload::threads::noted_phases::NotedPhases;

    /// Warm-up and measured ones of the settings for tests.
    pub const OPERATIONS: u64 = 9;

    /// This thread's bytes and calls by read(2) and write(2) and their kin (proc(5), /proc/PID/io).
    fn io_counts() -> BTreeMap<String, u64> {
        let lines = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let pairs = lines.lines().filter_map(|line| line.split_once(": "));
        pairs.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
    }

    /// Makes the files, runs the operations, and gives what they left.
    pub fn run_in(directory: &std::path::Path, request: &dyn WorkloadRequest) -> ClosedWorkload {
        run(request.prepare(directory, 5).unwrap()).0
    }

    /// Runs the operations, checks what they left, and gives what the kernel counted meanwhile.
    pub fn run(mut workload: Box<dyn Workload>) -> (ClosedWorkload, BTreeMap<String, u64>) {
        let mut notes = NotedPhases::default();
        let before = io_counts();
        workload.run(&mut notes).unwrap();
        let mut increase = io_counts();
        for (name, value) in &mut increase {
            *value -= before[name];
        }
        assert_eq!(notes.phases, ["warm-up", "commit"]);
        let closed = workload.close().unwrap();
        closed.remains.check().unwrap();
        (closed, increase)
    }

    /// Syncs of all transactions.
    pub fn sync_calls(closed: &ClosedWorkload) -> i64 {
        closed.transactions.iter().map(|transaction| transaction.sync_calls).sum()
    }

    /// Return why a case is refused.
    pub fn refusal(result: Result<Box<dyn Workload>, WorkloadError>) -> String {
        let error = result.err().expect("it is refused");
        assert!(error.is_wrong_use(), "{error}");
        error.to_string()
    }
}
