//! The fields of a record whose workload is changes of names, and the words they may have.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::record::{Switch, words};
use crate::workload::kind::Space;
use crate::workload::threads::plan::Plan;

words! {
    /// Its one word.
    FileMetadataWorkload { Metadata = "file-metadata" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileMetadataSettings {
    pub workload: FileMetadataWorkload,
    pub transactions: u64,
    pub duration_ms: u64,
    pub warmup_transactions: u64,
    pub threads: NonZeroU64,
    pub metadata_operation: MetadataOperation,
    pub sync_file: Switch,
    pub sync_directory: Switch,
}

words! {
    /// One change of, or look at, a name.
    MetadataOperation {
        Create = "create", Unlink = "unlink", Rename = "rename", Mkdir = "mkdir", Stat = "stat",
    }
}

impl FileMetadataSettings {
    /// What there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// Whether it is to find the kernel's caches empty: a look-up in them would cost nothing.
    pub fn needs_cold_cache(&self) -> bool {
        self.metadata_operation == MetadataOperation::Stat
    }

    /// A file for each operation.
    pub fn space(&self) -> Space {
        Space { bytes: 0, files: self.plan().count().unwrap_or(0) }
    }
}

impl MetadataOperation {
    /// Whether the names must be there before.
    pub fn needs_files(self) -> bool {
        matches!(self, Self::Unlink | Self::Rename | Self::Stat)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A small case of creates.
    pub fn metadata_settings() -> FileMetadataSettings {
        FileMetadataSettings {
            workload: FileMetadataWorkload::Metadata,
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
