//! Passes over one file, one after the other, as benchmarks of filesystems make them (IOzone's
//! tests, sysbench's modes of fileio): it is written, written again, read in order, read at random
//! places, and written at random places, record by record, each pass as many records as the file
//! has. The pages of the file are dropped from the page cache before each pass that reads.
//!
//! settings -> pass

mod pass;
pub mod settings;

use std::fs::OpenOptions;
use std::path::Path;

use rustix::fs::Advice;
use serde_json::{Value, json};

use super::error::{WorkloadError, failed};
use super::files::data_file;
use super::kind::{Asked, ClosedWorkload, Space, Workload, WorkloadKind};
use super::ledger::{self, Ledger};
use super::stream_hash::hash_of;
use super::threads;
use super::threads::observer::Observer;
use super::threads::plan::Plan;
use pass::{PassTask, PassedFile};
use settings::{FilePassesSettings, FilePassesWorkload, Pass};

pub const KIND: WorkloadKind = WorkloadKind::new::<FilePassesSettings>(FilePassesWorkload::WORDS);

impl Asked for FilePassesSettings {
    fn space_needed(&self) -> Space {
        self.space()
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload file-passes does not look for what a power cut leaves; use file-write")
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        data_file::refuse_large(directory, self.file_bytes, 1)?;
        if self.record_bytes == 0 || self.record_bytes > self.file_bytes {
            return Err(WorkloadError::refused(format!(
                "a record of {} bytes does not fit in a file of {} bytes; raise file_bytes",
                self.record_bytes, self.file_bytes
            )));
        }
        let path = directory.join("data");
        let create = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = create.map_err(failed("create", &path))?;
        Ok(Box::new(FilePasses {
            settings: self.clone(),
            file: PassedFile::new(path, file, self, seed),
            ledger: Ledger::default(),
        }))
    }
}

/// A file that is passed over.
struct FilePasses {
    settings: FilePassesSettings,
    file: PassedFile,
    ledger: Ledger,
}

impl FilePasses {
    /// Has what was written on the device, and nothing of the file in memory.
    fn drop_pages(&self) -> Result<(), WorkloadError> {
        let PassedFile { file, path, .. } = &self.file;
        file.sync_all().map_err(failed("fsync", path))?;
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed).map_err(failed("posix_fadvise", path))
    }
}

impl Workload for FilePasses {
    fn needs_cold_cache(&self) -> bool {
        false // of its own file it sees to that, pass by pass
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        Ok(json!({ "passes": Pass::ALL.map(Pass::verb), "records": self.settings.records() }))
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let plan = Plan::new(0, self.settings.records(), 0);
        for pass in Pass::ALL {
            if pass.is_read() {
                self.drop_pages()?;
            }
            observer.part(pass.verb());
            let mut one = [PassTask::new(&mut self.file, pass)];
            for ledger in threads::run(&mut one, plan, observer)? {
                self.ledger.tid = ledger.tid;
                self.ledger.entries.extend(ledger.entries);
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { settings, file, ledger } = *self;
        Ok(ClosedWorkload {
            transactions: ledger::rows(&[ledger]),
            operation_hash: hash_of(vec![file.hash(settings.workload.word())]),
            manifest: Vec::new(),
            incomplete_reasons: Vec::new(),
            remains: Box::new(file),
        })
    }
}

#[cfg(test)]
#[path = "passes_test.rs"]
mod tests;
