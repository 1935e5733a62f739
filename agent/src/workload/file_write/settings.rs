//! The fields of a record whose workload is writes to files, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::workload::files::engine::Engine;
use crate::workload::files::stream::{Access, Shape};
use crate::workload::kind::Space;
use crate::workload::threads::plan::Plan;

words! {
    /// Its one word.
    FileWriteWorkload { Write = "file-write" }
}

/// Meaning and range of each stand in jojlab/experiment/fields/file.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileWriteSettings {
    pub workload: FileWriteWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub access: Access,
    pub overlap_percent: u64,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub sync_mode: SyncMode,
    pub sync_every: u64,
    pub read_percent: u64,
    pub engine: Engine,
}

words! {
    /// How a write is made, and made durable.
    SyncMode {
        None = "none", OSync = "o_sync", ODsync = "o_dsync", Fsync = "fsync",
        Fdatasync = "fdatasync", ODirect = "o_direct", ODirectSync = "o_direct_sync",
        Mmap = "mmap", MmapAsync = "mmap_async", MmapSync = "mmap_sync",
        SyncFileRange = "sync_file_range", RwfDsync = "rwf_dsync",
    }
}

impl FileWriteSettings {
    /// What there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// What a thread's stream of operations is made from.
    pub fn shape(&self, thread: u64) -> Shape {
        Shape {
            access: self.access,
            overlap_percent: self.overlap_percent,
            read_percent: self.read_percent,
            record_bytes: self.record_bytes,
            file_bytes: self.file_bytes,
            operations: self.plan().share(thread, self.threads.get()).count(),
        }
    }

    /// The bytes of all files: where records are appended, of those alone.
    pub fn space(&self) -> Space {
        let files = self.threads.get();
        let appended = self.plan().count().unwrap_or(0);
        let bytes = match self.access {
            Access::Append => appended.saturating_mul(self.record_bytes),
            _ => self.file_bytes.saturating_mul(files),
        };
        Space { bytes, files }
    }
}

impl SyncMode {
    /// Whether a store into mapped memory takes the place of write(2).
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Mmap | Self::MmapAsync | Self::MmapSync)
    }

    /// Whether the page cache is passed by.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::ODirect | Self::ODirectSync)
    }

    /// Whether each write is durable when it returns, with no call after it.
    pub fn is_in_write(self) -> bool {
        matches!(self, Self::OSync | Self::ODsync | Self::ODirectSync | Self::RwfDsync)
    }

    /// Whether a call after the write makes it durable, or starts to.
    pub fn has_call(self) -> bool {
        matches!(
            self,
            Self::Fsync | Self::Fdatasync | Self::MmapAsync | Self::MmapSync | Self::SyncFileRange
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small case of random writes.
    pub fn write_settings() -> FileWriteSettings {
        FileWriteSettings {
            workload: FileWriteWorkload::Write,
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            threads: NonZeroU64::MIN,
            access: Access::Random,
            overlap_percent: 0,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            sync_mode: SyncMode::Fsync,
            sync_every: 1,
            read_percent: 0,
            engine: Engine::Calls,
        }
    }
}
