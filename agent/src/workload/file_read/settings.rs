//! The fields of a record whose workload is reads of files, and the words they may have.

use serde::{Deserialize, Serialize};

use crate::record::words;
use crate::workload::files::settings::FileSettings;
use crate::workload::kind::Space;

words! {
    /// Its one word.
    FileReadWorkload { Read = "file-read" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FileReadSettings {
    pub workload: FileReadWorkload,
    #[serde(flatten)]
    pub files: FileSettings,
    pub read_mode: ReadMode,
}

words! {
    /// Through the page cache, or past it.
    ReadMode { Buffered = "buffered", ODirect = "o_direct" }
}

impl FileReadSettings {
    /// The bytes of all files.
    pub fn space(&self) -> Space {
        let files = self.files.threads.get();
        Space { bytes: self.files.file_bytes.saturating_mul(files), files }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::workload::files::settings::tests::file_settings;

    /// A small case of random reads.
    pub fn read_settings() -> FileReadSettings {
        FileReadSettings {
            workload: FileReadWorkload::Read,
            files: file_settings(),
            read_mode: ReadMode::Buffered,
        }
    }
}
