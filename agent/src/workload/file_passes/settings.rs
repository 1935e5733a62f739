//! The fields of a record whose workload is passes over a file, the words they may have, and the
//! passes.

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::workload::kind::Space;

words! {
    /// Its one word.
    FilePassesWorkload { Passes = "file-passes" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FilePassesSettings {
    pub workload: FilePassesWorkload,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub sync_every: u64,
}

impl FilePassesSettings {
    /// Whole records that fit in the file: the operations of each pass.
    pub fn records(&self) -> u64 {
        self.file_bytes / self.record_bytes.max(1)
    }

    /// The bytes of the file.
    pub fn space(&self) -> Space {
        Space { bytes: self.file_bytes, files: 1 }
    }
}

/// One pass over the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    Write,
    Rewrite,
    Read,
    RandomRead,
    RandomWrite,
}

impl Pass {
    /// In their order: each finds what those before it left.
    pub const ALL: [Self; 5] =
        [Self::Write, Self::Rewrite, Self::Read, Self::RandomRead, Self::RandomWrite];

    /// What a record's operation is in the transactions table.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Write => "write-pass",
            Self::Rewrite => "rewrite-pass",
            Self::Read => "read-pass",
            Self::RandomRead => "random-read-pass",
            Self::RandomWrite => "random-write-pass",
        }
    }

    /// Whether it reads.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    /// Whether its records come in random order, some of them twice.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Five passes over sixteen records.
    pub fn passes_settings() -> FilePassesSettings {
        FilePassesSettings {
            workload: FilePassesWorkload::Passes,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            sync_every: 5,
        }
    }
}
