//! The fields of a case whose workload is one of plain files: a struct for each workload, and the
//! words its fields may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::{Switch, words};

words! {
    /// What is measured of files: writes, reads, or changes of their names.
    FileWorkload { Write = "file-write", Read = "file-read", Metadata = "file-metadata" }
}

/// Meaning and range of each stand in jojlab/experiment/fields/file.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileWriteSettings {
    pub workload: FileWorkload,
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

/// As above, of reads.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileReadSettings {
    pub workload: FileWorkload,
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

/// As above, of changes of names.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileMetadataSettings {
    pub workload: FileWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub metadata_operation: MetadataOperation,
    pub sync_file: Switch,
    pub sync_directory: Switch,
}

words! {
    /// Which record of the file comes next.
    Access {
        Sequential = "sequential", Random = "random", Shuffled = "shuffled", Append = "append",
        Rewrite = "rewrite",
    }
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
words! {
    /// Through the page cache, or past it.
    ReadMode { Buffered = "buffered", ODirect = "o_direct" }
}
words! {
    /// How an operation reaches the kernel.
    Engine { Calls = "calls", IoUring = "io_uring", IoUringPolled = "io_uring_polled" }
}
words! {
    /// One change of, or look at, a name.
    MetadataOperation {
        Create = "create", Unlink = "unlink", Rename = "rename", Mkdir = "mkdir", Stat = "stat",
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
pub(crate) mod tests {
    use super::*;

    /// A small case of random writes for tests.
    pub(crate) fn write_settings() -> FileWriteSettings {
        FileWriteSettings {
            workload: FileWorkload::Write,
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

    /// The reads that go with them.
    pub(crate) fn read_settings() -> FileReadSettings {
        FileReadSettings {
            workload: FileWorkload::Read,
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

    /// A small case of creates.
    pub(crate) fn metadata_settings() -> FileMetadataSettings {
        FileMetadataSettings {
            workload: FileWorkload::Metadata,
            transactions: 7,
            duration_ms: 0,
            warmup_transactions: 2,
            threads: NonZeroU64::MIN,
            metadata_operation: MetadataOperation::Create,
            sync_file: Switch::On,
            sync_directory: Switch::Off,
        }
    }
}
