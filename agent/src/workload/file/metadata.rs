//! Changes of names: makes, unlinks, renames or looks up one name an operation, and makes file or
//! directory durable if the case says so. The files are empty: what is measured is metadata alone.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Check, Performed, Step, failed};
use crate::case::{FileMetadataSettings, MetadataOperation, Switch};
use crate::workload::WorkloadError;

/// The directory of the names, in the filesystem's root.
const DIRECTORY: &str = "names";

/// A directory whose names are changed.
pub struct Metadata {
    settings: FileMetadataSettings,
    path: PathBuf,
    directory: File,
    /// The file that the next operation is about, where it must be open before.
    file: Option<File>,
    operations: u64,
}

impl Metadata {
    /// Makes the directory, and the files that there must be; gives the stream's hash beside.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileMetadataSettings,
    ) -> Result<(Self, String), WorkloadError> {
        let operation = settings.metadata_operation;
        let syncs = [settings.sync_file, settings.sync_directory].contains(&Switch::On);
        if operation == MetadataOperation::Stat && syncs {
            return Err(WorkloadError::Refused(
                "stat changes nothing that could be synced; sync_file and sync_directory must be \
                 off"
                .into(),
            ));
        }
        let path = directory.join(DIRECTORY);
        std::fs::create_dir(&path).map_err(failed("mkdir", &path))?;
        let operations = settings.warmup_transactions + settings.transactions;
        if operation.needs_files() {
            for index in 0..operations {
                let file = path.join(name(index));
                File::create(&file).map_err(failed("create", &file))?;
            }
        }
        let opened = File::open(&path).map_err(failed("open", &path))?;
        let hash = hash(operation, operations);
        let settings = settings.clone();
        Ok((Self { settings, path, directory: opened, file: None, operations }, hash))
    }

    /// Whether it is to find the kernel's caches empty: a look-up in them would cost nothing.
    pub fn needs_cold_cache(&self) -> bool {
        self.settings.metadata_operation == MetadataOperation::Stat
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

impl MetadataOperation {
    /// Whether the names must be there before.
    fn needs_files(self) -> bool {
        matches!(self, Self::Unlink | Self::Rename | Self::Stat)
    }
}

impl Step for Metadata {
    fn verb(&self) -> &'static str {
        self.settings.metadata_operation.word()
    }

    fn get_ready(&mut self, index: u64) -> Result<(), WorkloadError> {
        let operation = self.settings.metadata_operation;
        if operation.needs_files() && self.settings.sync_file == Switch::On {
            // A file without a name can be synced only by who has it open.
            let path = self.path.join(name(index));
            self.file = Some(File::open(&path).map_err(failed("open", &path))?);
        }
        Ok(())
    }

    fn perform(
        &mut self,
        index: u64,
        now_ns: &dyn Fn() -> i64,
    ) -> Result<Performed, WorkloadError> {
        let file = self.change(index)?;
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
        Ok(Performed { commit_ns, sync_calls })
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        let found = names_in(&self.path)?.len();
        Ok(json!({ "names_before": found }))
    }

    fn close(self: Box<Self>) -> Box<dyn Check> {
        let Self { settings, path, operations, .. } = *self;
        Box::new(Names { path, operation: settings.metadata_operation, operations })
    }
}

/// The names that must be left.
struct Names {
    path: PathBuf,
    operation: MetadataOperation,
    operations: u64,
}

impl Check for Names {
    fn check(&self) -> Result<(), WorkloadError> {
        let mut wanted: Vec<String> = match self.operation {
            MetadataOperation::Unlink => Vec::new(),
            MetadataOperation::Rename => (0..self.operations).map(new_name).collect(),
            _ => (0..self.operations).map(name).collect(),
        };
        wanted.sort();
        let found = names_in(&self.path)?;
        if found == wanted {
            return Ok(());
        }
        let what = format!(
            "holds {} names, not the {} that {} leaves",
            found.len(),
            wanted.len(),
            self.operation
        );
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }
}

/// The names in a directory, sorted.
fn names_in(path: &Path) -> Result<Vec<String>, WorkloadError> {
    let entries = std::fs::read_dir(path).map_err(failed("list", path))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", path))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn name(index: u64) -> String {
    format!("file-{index:07}")
}

fn new_name(index: u64) -> String {
    format!("renamed-{index:07}")
}

/// SHA-256 over the operation and its names in order, in hexadecimal.
fn hash(operation: MetadataOperation, operations: u64) -> String {
    let mut hasher = Sha256::new();
    hasher.update(operation.word());
    for index in 0..operations {
        hasher.update(name(index));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
