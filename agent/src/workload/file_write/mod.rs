//! Writes, and reads between them: each thread writes or reads one record of its own file an
//! operation, and makes a write durable in the way the case names.
//!
//! settings -> write

pub mod settings;
mod write;

use std::path::Path;

use super::error::WorkloadError;
use super::files::data_file;
use super::files::threads::FileThreads;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use settings::{FileWriteSettings, FileWriteWorkload};
use write::WriteTask;

pub const KIND: WorkloadKind = WorkloadKind::new::<FileWriteSettings>(FileWriteWorkload::WORDS);

impl Asked for FileWriteSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        None
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let threads = self.files.threads.get();
        data_file::refuse_large(directory, self.files.file_bytes, threads)?;
        let worker = |thread| WriteTask::prepare(directory, self, seed, thread);
        Ok(Box::new(FileThreads::new(threads, self.files.plan(), self.read_percent > 0, worker)?))
    }
}

#[cfg(test)]
#[path = "write_test.rs"]
mod tests;
