//! The fields of a record that reads and writes of files share: what there is to do, by how many
//! threads, to files of what shape, and how it reaches the kernel.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::stream::{Access, Shape};
use crate::workload::threads::plan::Plan;

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FileSettings {
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub access: Access,
    pub overlap_percent: u64,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub engine: Engine,
}

impl FileSettings {
    /// What there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// What a thread's stream of operations is made from.
    pub fn shape(&self, thread: u64, read_percent: u64) -> Shape {
        Shape {
            access: self.access,
            overlap_percent: self.overlap_percent,
            read_percent,
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            operations: self.plan().share(thread, self.threads.get()).count(),
        }
    }

    /// The length of a record in memory.
    pub fn record_length(&self) -> usize {
        usize::try_from(self.record_bytes).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small case of random operations.
    pub fn file_settings() -> FileSettings {
        FileSettings {
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            threads: NonZeroU64::MIN,
            access: Access::Random,
            overlap_percent: 0,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            engine: Engine::Calls,
        }
    }
}
