//! Changes of names: creates, renames or removes files and directories one after the other, or
//! looks them up, with the syncs that the record asks for. After a power cut, each name that had to
//! be there is looked for.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::WorkloadError;
use super::files::FileThreads;
use super::files::remains::{Damage, FilesOfThread, own_name};
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use super::threads::task::Plan;
use crate::record::{Switch, words};
use crate::tables::timeline::now_ns;
use crate::workload::error::step_error;
use crate::workload::files::FileTask;
use crate::workload::ledger::LedgerEntry;
use crate::workload::power_cut::Progress;
use crate::workload::threads::task::Task;

pub const KIND: WorkloadKind =
    WorkloadKind::new::<FileMetadataSettings>(FileMetadataWorkload::WORDS);

impl WorkloadRequest for FileMetadataSettings {
    /// A file for each operation.
    fn space_needed(&self) -> Space {
        Space { bytes: 0, files: self.plan().count().unwrap_or(0) }
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
    /// Return what there is to do, over all threads.
    pub fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }

    /// Return whether it is to find the kernel's caches empty: a look-up in them would cost
    /// nothing.
    pub fn needs_cold_cache(&self) -> bool {
        self.metadata_operation == MetadataOperation::Stat
    }
}

impl MetadataOperation {
    /// Return whether the names must be there before.
    pub fn needs_files(self) -> bool {
        matches!(self, Self::Unlink | Self::Rename | Self::Stat)
    }
}

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
            return Err(WorkloadError::refusal(
                "stat changes nothing that could be synced; sync_file and sync_directory must be \
                 off",
            ));
        }
        let path = directory.join(own_name(DIRECTORY, thread));
        std::fs::create_dir(&path).map_err(step_error("mkdir", &path))?;
        if operation.needs_files() {
            let plan = settings.plan().share(thread, settings.threads.get());
            let operations = plan.count().ok_or_else(|| {
                let what = format!("{operation} needs its files made before: give transactions");
                WorkloadError::refusal(format!("{what}, not duration_ms"))
            })?;
            for index in 0..operations {
                let file = path.join(name(index));
                File::create(&file).map_err(step_error("create", &file))?;
            }
        }
        let opened = File::open(&path).map_err(step_error("open", &path))?;
        let settings = settings.clone();
        Ok(Self { settings, path, directory: opened, file: None, index: 0 })
    }

    /// Opens the file that the next operation is about, if it will have no name to be synced by.
    fn open_before(&mut self) -> Result<(), WorkloadError> {
        let operation = self.settings.metadata_operation;
        if operation.needs_files() && self.settings.sync_file == Switch::On {
            let path = self.path.join(name(self.index));
            self.file = Some(File::open(&path).map_err(step_error("open", &path))?);
        }
        Ok(())
    }

    /// The change itself; gives the file to sync where there is one by then.
    fn change(&mut self, index: u64) -> Result<Option<File>, WorkloadError> {
        let path = self.path.join(name(index));
        match self.settings.metadata_operation {
            MetadataOperation::Create => {
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                return file.map(Some).map_err(step_error("create", &path));
            }
            MetadataOperation::Mkdir => {
                DirBuilder::new().create(&path).map_err(step_error("mkdir", &path))?;
                if self.settings.sync_file == Switch::On {
                    return File::open(&path).map(Some).map_err(step_error("open", &path));
                }
            }
            MetadataOperation::Unlink => {
                std::fs::remove_file(&path).map_err(step_error("unlink", &path))?;
            }
            MetadataOperation::Rename => {
                let new = self.path.join(new_name(index));
                std::fs::rename(&path, new).map_err(step_error("rename", &path))?;
            }
            MetadataOperation::Stat => {
                rustix::fs::stat(&path).map_err(step_error("stat", &path))?;
            }
        }
        Ok(self.file.take())
    }
}

impl Task for MetadataTask {
    fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
        self.open_before()?;
        let begin_ns = now_ns();
        let file = self.change(self.index)?;
        self.index += 1;
        let commit_ns = now_ns();
        let mut sync_calls = 0;
        if self.settings.sync_file == Switch::On
            && let Some(file) = &file
        {
            file.sync_all().map_err(step_error("fsync", &self.path))?;
            sync_calls += 1;
        }
        drop(file);
        if self.settings.sync_directory == Switch::On {
            self.directory.sync_all().map_err(step_error("fsync", &self.path))?;
            sync_calls += 1;
        }
        let verb = self.settings.metadata_operation.word();
        Ok(LedgerEntry {
            sync_calls,
            commit_ns,
            return_ns: now_ns(),
            ..LedgerEntry::begin(verb, begin_ns)
        })
    }
}

impl FileTask for MetadataTask {
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let found = names_in(&self.path)?.len();
        Ok(json!({ "names_before": found }))
    }

    fn hash(&self, performed: u64) -> Sha256 {
        hash(self.settings.metadata_operation, performed)
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

/// The names that must be left.
pub struct NamesLeft {
    pub path: PathBuf,
    pub operation: MetadataOperation,
    pub operations: u64,
}

impl FilesOfThread for NamesLeft {
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

    fn judge(&self, progress: Progress) -> Result<Damage, WorkloadError> {
        let Progress { returned, begun } = progress;
        let mut found: BTreeSet<String> = names_in(&self.path)?.into_iter().collect();
        let wrong = |what: String| Err(WorkloadError::Contents { path: self.path.clone(), what });
        let mut damage = Damage::default();
        for index in 0..self.operations {
            let old = found.remove(&name(index));
            let new = found.remove(&new_name(index));
            let is_done = match self.operation {
                MetadataOperation::Create | MetadataOperation::Mkdir => old,
                MetadataOperation::Unlink => !old,
                MetadataOperation::Rename if old && new => {
                    damage.torn += 1;
                    continue;
                }
                MetadataOperation::Rename if !old && !new => {
                    return wrong(format!("has neither {} nor {}", name(index), new_name(index)));
                }
                MetadataOperation::Rename => new,
                MetadataOperation::Stat => continue,
            };
            if is_done && index >= begun {
                return wrong(format!("shows {} of {}, too early", self.operation, name(index)));
            }
            damage.lost += u64::from(!is_done && index < returned);
        }
        match found.first() {
            Some(strange) => wrong(format!("holds {strange}, which nobody made")),
            None => Ok(damage),
        }
    }
}

/// The names in a directory, sorted.
///
/// # Errors
/// If it cannot be listed.
pub fn names_in(path: &Path) -> Result<Vec<String>, WorkloadError> {
    let entries = std::fs::read_dir(path).map_err(step_error("list", path))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(step_error("list", path))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The name that operation `index` makes or finds.
pub fn name(index: u64) -> String {
    format!("file-{index:07}")
}

/// The name that a rename gives.
pub fn new_name(index: u64) -> String {
    format!("renamed-{index:07}")
}

#[cfg(test)]
mod names_left_tests {
    use super::*;
    use std::fs::File;

    /// The damage to four operations, of which `counts` returned and began, with these names left.
    fn judge(
        operation: MetadataOperation,
        names: &[String],
        (returned, begun): (u64, u64),
    ) -> Option<(u64, u64)> {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            File::create(folder.path().join(name)).unwrap();
        }
        let left = NamesLeft { path: folder.path().to_owned(), operation, operations: 4 };
        let found = left.judge(Progress { returned, begun });
        found.ok().map(|it| (it.lost, it.torn))
    }

    fn old<const N: usize>(indexes: [u64; N]) -> Vec<String> {
        indexes.map(name).to_vec()
    }

    #[test]
    fn a_created_file_is_there_once_its_call_returned() {
        let found = |indexes: &[u64], counts| {
            let names: Vec<String> = indexes.iter().map(|&index| name(index)).collect();
            judge(MetadataOperation::Create, &names, counts)
        };
        assert_eq!(found(&[0, 1], (2, 3)), Some((0, 0)));
        assert_eq!(found(&[0, 1, 2], (2, 3)), Some((0, 0)));
        assert_eq!(found(&[1], (2, 3)), Some((1, 0)));
        assert_eq!(found(&[0, 1, 2, 3], (2, 3)), None);
        assert_eq!(judge(MetadataOperation::Create, &["lost".into()], (0, 4)), None);
    }

    #[test]
    fn an_unlinked_file_is_gone_once_its_call_returned() {
        let found = |names: Vec<String>, counts| judge(MetadataOperation::Unlink, &names, counts);
        assert_eq!(found(old([2, 3]), (2, 3)), Some((0, 0)));
        assert_eq!(found(old([3]), (2, 3)), Some((0, 0)));
        assert_eq!(found(old([1, 2, 3]), (2, 3)), Some((1, 0)));
        assert_eq!(found(old([2]), (2, 3)), None);
    }

    #[test]
    fn a_rename_is_there_whole_or_not_at_all() {
        let found = |names: Vec<String>, counts| judge(MetadataOperation::Rename, &names, counts);
        let with = |mut names: Vec<String>, new: &[u64]| {
            names.extend(new.iter().map(|&index| new_name(index)));
            names
        };
        assert_eq!(found(with(old([2, 3]), &[0, 1]), (2, 3)), Some((0, 0)));
        assert_eq!(found(with(old([1, 2, 3]), &[0]), (2, 3)), Some((1, 0)));
        assert_eq!(found(with(old([1, 2, 3]), &[0, 1]), (2, 3)), Some((0, 1)));
        assert_eq!(found(with(old([2, 3]), &[0]), (2, 3)), None);
        assert_eq!(found(with(old([2]), &[0, 1, 3]), (2, 3)), None);
    }
}

#[cfg(test)]
pub mod tests {
    // Changes of names in real directories on this machine.
    use std::num::NonZeroU64;

    use super::*;
    use crate::record::Switch;
    use crate::workload::files::watched::{OPERATIONS, refusal, run, run_in, sync_calls};
    use crate::workload::kind::WorkloadRequest;

    #[test]
    fn every_change_of_names_is_made_and_synced_as_asked() {
        use MetadataOperation::{Create, Mkdir, Rename, Stat, Unlink};
        for metadata_operation in [Create, Unlink, Rename, Mkdir, Stat] {
            for syncs in 0..4_u8 {
                let switch = |on| if on { Switch::On } else { Switch::Off };
                let settings = FileMetadataSettings {
                    metadata_operation,
                    sync_file: switch(syncs & 1 > 0),
                    sync_directory: switch(syncs & 2 > 0),
                    ..metadata_settings()
                };
                let directory = tempfile::tempdir().unwrap();
                let workload = settings.prepare(directory.path(), 5);
                if metadata_operation == Stat && syncs > 0 {
                    assert!(refusal(workload).contains("stat changes nothing"));
                    continue;
                }
                let (closed, _) = run(workload.unwrap());
                let due = i64::from(syncs.count_ones()) * OPERATIONS.cast_signed();
                assert_eq!(sync_calls(&closed), due, "{metadata_operation} {syncs}");
                let names =
                    std::fs::read_dir(directory.path().join("names")).unwrap().count() as u64;
                assert_eq!(names, if metadata_operation == Unlink { 0 } else { OPERATIONS });
            }
        }
    }

    #[test]
    fn each_thread_changes_names_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let threads = NonZeroU64::new(4).unwrap();
        run_in(directory.path(), &FileMetadataSettings { threads, ..metadata_settings() });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_duration_for_unlink_or_rename_is_refused() {
        let (transactions, duration_ms) = (0, 60_000);
        for metadata_operation in [MetadataOperation::Unlink, MetadataOperation::Rename] {
            let settings = FileMetadataSettings {
                transactions,
                duration_ms,
                metadata_operation,
                ..metadata_settings()
            };
            let directory = tempfile::tempdir().unwrap();
            let error = refusal(settings.prepare(directory.path(), 5));
            assert!(error.contains("needs its files made before"), "{error}");
        }
    }

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
