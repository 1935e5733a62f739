//! Changes of names: each thread makes, unlinks, renames or looks up one name of its own directory
//! an operation.
//!
//! settings -> names_left -> metadata

mod metadata;
mod names_left;
pub mod settings;

use std::path::Path;

use super::error::WorkloadError;
use super::files::threads::FileThreads;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use metadata::MetadataTask;
use settings::{FileMetadataSettings, FileMetadataWorkload, MetadataOperation};

pub const KIND: WorkloadKind =
    WorkloadKind::new::<FileMetadataSettings>(FileMetadataWorkload::WORDS);

impl Asked for FileMetadataSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        let changes_nothing = self.metadata_operation == MetadataOperation::Stat;
        changes_nothing.then_some("metadata_operation stat changes nothing")
    }

    fn prepare(&self, directory: &Path, _: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let (threads, cold) = (self.threads.get(), self.needs_cold_cache());
        let worker = |thread| MetadataTask::prepare(directory, self, thread);
        Ok(Box::new(FileThreads::new(threads, self.plan(), cold, worker)?))
    }
}

#[cfg(test)]
#[path = "metadata_test.rs"]
mod tests;
