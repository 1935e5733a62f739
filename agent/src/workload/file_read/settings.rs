//! The fields of a record whose workload is reads of files, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::workload::files::engine::Engine;
use crate::workload::files::stream::{Access, Shape};
use crate::workload::kind::Space;
use crate::workload::threads::plan::Plan;

words! {
    /// Its one word.
    FileReadWorkload { Read = "file-read" }
}

/// Meaning and range of each stand in jojlab/experiment/fields/file.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileReadSettings {
    pub workload: FileReadWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub access: Access,
    pub overlap_percent: u64,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub read_mode: ReadMode,
    pub engine: Engine,
}

words! {
    /// Through the page cache, or past it.
    ReadMode { Buffered = "buffered", ODirect = "o_direct" }
}

impl FileReadSettings {
    /// What there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// What a thread's stream of operations is made from.
    pub fn shape(&self, thread: u64) -> Shape {
        Shape {
            access: self.access,
            overlap_percent: self.overlap_percent,
            read_percent: 100,
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            operations: self.plan().share(thread, self.threads.get()).count(),
        }
    }

    /// The bytes of all files.
    pub fn space(&self) -> Space {
        let files = self.threads.get();
        Space { bytes: self.file_bytes.saturating_mul(files), files }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small case of random reads.
    pub fn read_settings() -> FileReadSettings {
        FileReadSettings {
            workload: FileReadWorkload::Read,
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            threads: NonZeroU64::MIN,
            access: Access::Random,
            overlap_percent: 0,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            read_mode: ReadMode::Buffered,
            engine: Engine::Calls,
        }
    }
}
