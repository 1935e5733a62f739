//! The fields of a record whose workload is writes to files, and the words they may have.

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::workload::files::settings::FileSettings;
use crate::workload::files::stream::Access;
use crate::workload::kind::Space;

words! {
    /// Its one word.
    FileWriteWorkload { Write = "file-write" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FileWriteSettings {
    pub workload: FileWriteWorkload,
    #[serde(flatten)]
    pub files: FileSettings,
    pub sync_mode: SyncMode,
    pub sync_every: u64,
    pub read_percent: u64,
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
    /// The bytes of all files: where records are appended, of those alone.
    pub fn space(&self) -> Space {
        let files = self.files.threads.get();
        let appended = self.files.plan().count().unwrap_or(0);
        let bytes = match self.files.access {
            Access::Append => appended.saturating_mul(self.files.record_bytes),
            _ => self.files.file_bytes.saturating_mul(files),
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
    use crate::workload::files::settings::tests::file_settings;

    /// A small case of random writes.
    pub fn write_settings() -> FileWriteSettings {
        FileWriteSettings {
            workload: FileWriteWorkload::Write,
            files: file_settings(),
            sync_mode: SyncMode::Fsync,
            sync_every: 1,
            read_percent: 0,
        }
    }
}
