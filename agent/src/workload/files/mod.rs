//! What the workloads of plain files share: the stream of records, the file that holds them, how an
//! operation reaches the kernel, and the threads that run it.
//!
//! stream; engine: how an operation reaches the kernel; watched: runs for tests
//! remains: what a power cut left of the file; threads

pub mod engine;
pub mod remains;
pub mod stream;
pub mod threads;

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
    fn counted() -> BTreeMap<String, u64> {
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
        let before = counted();
        workload.run(&mut notes).unwrap();
        let mut increase = counted();
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

    /// Why a case is refused.
    pub fn refusal(result: Result<Box<dyn Workload>, WorkloadError>) -> String {
        let error = result.err().expect("it is refused");
        assert!(error.is_wrong_use(), "{error}");
        error.to_string()
    }
}
