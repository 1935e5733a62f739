//! Changes of names: makes, unlinks, renames or looks up one name an operation, and makes file or
//! directory durable if the case says so. The files are empty: what is measured is metadata alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::names_left::{NamesLeft, name, names_in, new_name};
use super::settings::{FileMetadataSettings, MetadataOperation};
use crate::record::Switch;
use crate::tables::timeline::now_ns;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::files::left::{FilesOfThread, own_name};
use crate::workload::files::threads::FileTask;
use crate::workload::ledger::Done;
use crate::workload::threads::task::Task;

/// The directory of the names, in the filesystem's root.
const DIRECTORY: &str = "names";

/// A directory whose names are changed.
pub struct MetadataTask {
    settings: FileMetadataSettings,
    path: PathBuf,
    directory: File,
    /// The file that the next operation is about, where it must be open before.
    file: Option<File>,
    /// The number of the next operation.
    index: u64,
}

impl MetadataTask {
    /// Makes the thread's directory, and the files that there must be.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileMetadataSettings,
        thread: u64,
    ) -> Result<Self, WorkloadError> {
        let operation = settings.metadata_operation;
        let syncs = [settings.sync_file, settings.sync_directory].contains(&Switch::On);
        if operation == MetadataOperation::Stat && syncs {
            return Err(WorkloadError::refused(
                "stat changes nothing that could be synced; sync_file and sync_directory must be \
                 off",
            ));
        }
        let path = directory.join(own_name(DIRECTORY, thread));
        std::fs::create_dir(&path).map_err(failed("mkdir", &path))?;
        if operation.needs_files() {
            let plan = settings.plan().share(thread, settings.threads.get());
            let operations = plan.count().ok_or_else(|| {
                let what = format!("{operation} needs its files made before: give transactions");
                WorkloadError::refused(format!("{what}, not duration_ms"))
            })?;
            for index in 0..operations {
                let file = path.join(name(index));
                File::create(&file).map_err(failed("create", &file))?;
            }
        }
        let opened = File::open(&path).map_err(failed("open", &path))?;
        let settings = settings.clone();
        Ok(Self { settings, path, directory: opened, file: None, index: 0 })
    }

    /// Opens the file that the next operation is about, if it will have no name to be synced by.
    fn open_before(&mut self) -> Result<(), WorkloadError> {
        let operation = self.settings.metadata_operation;
        if operation.needs_files() && self.settings.sync_file == Switch::On {
            let path = self.path.join(name(self.index));
            self.file = Some(File::open(&path).map_err(failed("open", &path))?);
        }
        Ok(())
    }

    /// The change itself; gives the file to sync where there is one by then.
    fn change(&mut self, index: u64) -> Result<Option<File>, WorkloadError> {
        let path = self.path.join(name(index));
        match self.settings.metadata_operation {
            MetadataOperation::Create => {
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                return file.map(Some).map_err(failed("create", &path));
            }
            MetadataOperation::Mkdir => {
                DirBuilder::new().create(&path).map_err(failed("mkdir", &path))?;
                if self.settings.sync_file == Switch::On {
                    return File::open(&path).map(Some).map_err(failed("open", &path));
                }
            }
            MetadataOperation::Unlink => {
                std::fs::remove_file(&path).map_err(failed("unlink", &path))?;
            }
            MetadataOperation::Rename => {
                let new = self.path.join(new_name(index));
                std::fs::rename(&path, new).map_err(failed("rename", &path))?;
            }
            MetadataOperation::Stat => {
                rustix::fs::stat(&path).map_err(failed("stat", &path))?;
            }
        }
        Ok(self.file.take())
    }
}

impl Task for MetadataTask {
    fn perform(&mut self, _: i64) -> Result<Done, WorkloadError> {
        self.open_before()?;
        let begin_ns = now_ns();
        let file = self.change(self.index)?;
        self.index += 1;
        let commit_ns = now_ns();
        let mut sync_calls = 0;
        if self.settings.sync_file == Switch::On
            && let Some(file) = &file
        {
            file.sync_all().map_err(failed("fsync", &self.path))?;
            sync_calls += 1;
        }
        drop(file);
        if self.settings.sync_directory == Switch::On {
            self.directory.sync_all().map_err(failed("fsync", &self.path))?;
            sync_calls += 1;
        }
        let verb = self.settings.metadata_operation.word();
        Ok(Done { sync_calls, commit_ns, return_ns: now_ns(), ..Done::begun(verb, begin_ns) })
    }
}

impl FileTask for MetadataTask {
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let found = names_in(&self.path)?.len();
        Ok(json!({ "names_before": found }))
    }

    fn hash(&self, performed: u64) -> Result<Sha256, WorkloadError> {
        Ok(hash(self.settings.metadata_operation, performed))
    }

    fn close(self, performed: u64) -> Box<dyn FilesOfThread> {
        let Self { settings, path, .. } = self;
        let operation = settings.metadata_operation;
        Box::new(NamesLeft { path, operation, operations: performed })
    }
}

/// SHA-256 over the operation and its names in order.
fn hash(operation: MetadataOperation, operations: u64) -> Sha256 {
    let mut hasher = Sha256::new();
    hasher.update(operation.word());
    for index in 0..operations {
        hasher.update(name(index));
    }
    hasher
}
