//! Reads: each thread reads one record of its own file an operation; the kernel's caches are empty
//! at first.
//!
//! settings -> read

mod read;
pub mod settings;

use std::path::Path;

use super::error::WorkloadError;
use super::files::data_file;
use super::files::threads::FileThreads;
use super::kind::{Asked, Space, Workload, WorkloadKind};
use read::ReadTask;
use settings::{FileReadSettings, FileReadWorkload};

pub const KIND: WorkloadKind = WorkloadKind::new::<FileReadSettings>(FileReadWorkload::WORDS);

impl Asked for FileReadSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload file-read changes nothing")
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let threads = self.files.threads.get();
        data_file::refuse_large(directory, self.files.file_bytes, threads)?;
        let worker = |thread| ReadTask::prepare(directory, self, seed, thread);
        Ok(Box::new(FileThreads::new(threads, self.files.plan(), true, worker)?))
    }
}

#[cfg(test)]
#[path = "read_test.rs"]
mod tests;
