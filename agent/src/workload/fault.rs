//! The faults that are planted beneath a program or SQLite, and what it made of them: a sync during
//! which the disk refuses a write, and a filesystem with little room left.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, fstatvfs, ftruncate, syncfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::device::flash;
use crate::messages::plural;
use crate::sqlite::contents::{ContentsDigest, database_digest};
use crate::sqlite::databases::Databases;
use crate::sqlite::error::SqliteError;
use crate::sqlite::sync_call;
use crate::tables::rows::Transaction;
use crate::tables::timeline::now_ns;
use crate::workload::error::{WorkloadError, step_error};
use crate::workload::ledger::is_commit;
use crate::workload::power_cut::{FaultFindings, FaultKind};
use crate::workload::sync_site::{SyncCount, SyncSite};

/// The file that takes the room; the program finds it in its directory.
const FILLER: &str = "joj-filler";

/// Attempts at what is left, as a filesystem takes of its room for the filler's own metadata.
const ATTEMPTS: u32 = 16;
/// So much less an attempt asks for where there was no room for what the filesystem said is free.
const RESERVE_BYTES: u64 = 64 << 10;

/// No sync fails, but all are counted.
const NONE: &str = "none";

/// The sync that is to fail: the call of a site with this number, from 1 on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFault {
    pub site: String,
    pub number: u64,
    /// The folder of the disk that refuses a write of it.
    pub disk: PathBuf,
}

/// The end of a sync during which the disk was to refuse a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedSync {
    /// The time at which it returned to the program.
    pub at_ns: i64,
    /// The error that the kernel gave, or none.
    pub errno: i32,
    /// Whether there was a write or flush that the disk refused.
    pub is_refused: bool,
}

/// The syncs of a program until now.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncFindings {
    pub sites: Vec<SyncCount>,
    pub failed: Option<FailedSync>,
}

impl SyncFindings {
    /// Return the sync that failed, or whose write the disk refused.
    pub fn failure(&self) -> Option<&FailedSync> {
        self.failed.as_ref().filter(|it| it.is_refused || it.errno != 0)
    }
}

/// Counts syncs by their sites, and keeps the one that was to fail.
#[derive(Debug, Default)]
pub struct SyncRecord {
    counts: BTreeMap<SyncSite, u64>,
    pub failed: Option<FailedSync>,
}

impl SyncRecord {
    /// Counts a call; gives its number at its site.
    pub fn count(&mut self, site: SyncSite) -> u64 {
        let count = self.counts.entry(site).or_default();
        *count += 1;
        *count
    }

    /// Return the calls until now, by their sites, and the one that was to fail.
    pub fn findings(&self) -> SyncFindings {
        let count = |(site, calls): (&SyncSite, &u64)| SyncCount {
            site: site.clone(),
            calls: *calls,
            is_fixed: site.is_fixed(),
        };
        let sites = self.counts.iter().map(count).collect();
        SyncFindings { sites, failed: self.failed.clone() }
    }
}

impl SyncFault {
    /// Reads the field: a site, and the number of the call there; none where it is empty, or the
    /// word by which syncs are counted alone.
    ///
    /// # Errors
    /// If it has no number, or no disk here can refuse a write.
    pub fn from_field(text: &str) -> Result<Option<Self>, WorkloadError> {
        if ["", NONE].contains(&text) {
            return Ok(None);
        }
        let wrong =
            |what| WorkloadError::refusal(format!("the case: failed_sync = {text}: {what}"));
        let parts = text.rsplit_once(' ').and_then(|(site, number)| {
            Some((site, number.parse().ok().filter(|number: &u64| *number > 0)?))
        });
        let remedy = "name a sync site and the number of its call, such as 'fsync log 3'";
        let (site, number) = parts.ok_or_else(|| wrong(remedy))?;
        let disk = flash::first_disk();
        let disk =
            disk.ok_or_else(|| wrong("no disk here can refuse a write: it takes a modelled one"))?;
        Ok(Some(Self { site: site.to_owned(), number, disk }))
    }

    /// Makes a sync, which says whether it failed and sets errno, while the disk refuses the first
    /// write. None where it cannot be told what the disk did.
    pub fn fail(&self, sync: impl FnOnce() -> bool) -> Option<FailedSync> {
        flash::set_fault(&self.disk, true).ok()?;
        let errno = if sync() { io::Error::last_os_error().raw_os_error()? } else { 0 };
        let is_refused = !flash::has_fault(&self.disk).ok()?;
        flash::set_fault(&self.disk, false).ok()?;
        Some(FailedSync { at_ns: now_ns(), errno, is_refused })
    }
}

/// Takes room until so many bytes are free for who has no privileges; gives how many are, which may
/// be some blocks more or less.
///
/// # Errors
/// If the filesystem allocates nothing in advance (fallocate(2)), or a step fails.
pub fn fill(directory: &Path, free_bytes: u64) -> Result<u64, WorkloadError> {
    let path = directory.join(FILLER);
    let file = File::create(&path).map_err(step_error("create", &path))?;
    let free = || {
        syncfs(&file).map_err(step_error("sync", &path))?;
        let stat = fstatvfs(&file).map_err(step_error("statfs", &path))?;
        Ok::<u64, WorkloadError>(stat.f_bavail * stat.f_frsize)
    };
    let (mut length, mut reserve) = (0, 0);
    for _ in 0..ATTEMPTS {
        let now = free()?;
        let block = fstatvfs(&file).map_err(step_error("statfs", &path))?.f_frsize;
        if now.abs_diff(free_bytes) <= block {
            break;
        }
        let wanted = (length + now).saturating_sub(free_bytes + reserve) / block * block;
        if wanted < length {
            ftruncate(&file, wanted).map_err(step_error("truncate", &path))?;
            length = wanted;
        } else if wanted > length {
            match fallocate(&file, FallocateFlags::empty(), length, wanted - length) {
                Ok(()) => length = wanted,
                Err(Errno::NOSPC) => reserve += RESERVE_BYTES,
                Err(error) => return Err(step_error("fallocate", &path)(error)),
            }
        } else {
            break;
        }
    }
    free()
}

/// Takes all room that there is for the agent, which has every privilege, and gives so many bytes
/// of it back; gives how many. The number of free blocks does not say it: some are the filesystem's
/// own (`reserved_clusters` of ext4).
///
/// # Errors
/// As `fill`.
fn fill_all_but(directory: &Path, free_bytes: u64) -> Result<u64, WorkloadError> {
    let path = directory.join(FILLER);
    let file = File::create(&path).map_err(step_error("create", &path))?;
    let stat = fstatvfs(&file).map_err(step_error("statfs", &path))?;
    let block = stat.f_frsize;
    let (mut length, mut step) = (0, stat.f_bfree * block);
    while step >= block {
        match fallocate(&file, FallocateFlags::empty(), length, step) {
            Ok(()) => length += step,
            Err(Errno::NOSPC) => step = step / 2 / block * block,
            Err(error) => return Err(step_error("fallocate", &path)(error)),
        }
    }
    let free_bytes = free_bytes.min(length);
    ftruncate(&file, length - free_bytes).map_err(step_error("truncate", &path))?;
    syncfs(&file).map_err(step_error("sync", &path))?;
    Ok(free_bytes)
}

/// Gives the room back, where it is taken: a check that must write is not to fail for want of it.
///
/// # Errors
/// If it cannot be.
pub fn empty(directory: &Path) -> Result<(), WorkloadError> {
    let path = directory.join(FILLER);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(step_error("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

// The same beneath SQLite in this process: its transactions fail, are rolled back, and the next one
// is tried. Of one whose COMMIT failed nobody knows whether it is there: what its connection reads
// then says what the next one builds on, and a power cut may leave either until that has returned.

/// The fields of a workload of SQLite that plant an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct FaultFields {
    /// The sync that fails, as `SyncFault` reads it; `NONE`: all are counted.
    pub failed_sync: String,
    /// The room that is free when the transactions begin; 0: all that there is.
    pub free_kib: u64,
}

impl FaultFields {
    /// Return whether an error is planted.
    pub fn is_planted(&self) -> bool {
        self.free_kib > 0 || !["", NONE].contains(&self.failed_sync.as_str())
    }

    /// Takes the room, where it is to be taken.
    ///
    /// # Errors
    /// If the field is none, or the room cannot be taken.
    pub fn plant(&self, directory: &Path) -> Result<PlantedFault, WorkloadError> {
        let sync = SyncFault::from_field(&self.failed_sync)?;
        let fill = || fill_all_but(directory, self.free_kib << 10);
        Ok(PlantedFault {
            directory: directory.to_owned(),
            counts_syncs: !self.failed_sync.is_empty(),
            has_sync: sync.is_some(),
            sync,
            free_bytes: (self.free_kib > 0).then(fill).transpose()?,
            syncs: Arc::default(),
        })
    }
}

/// The error beneath SQLite.
#[derive(Debug)]
pub struct PlantedFault {
    directory: PathBuf,
    counts_syncs: bool,
    has_sync: bool,
    /// Taken when the transactions begin.
    sync: Option<SyncFault>,
    free_bytes: Option<u64>,
    syncs: Arc<Mutex<SyncRecord>>,
}

impl PlantedFault {
    /// Watches SQLite's syncs from now on, until `left`; the one that is to fail does.
    pub fn begin(&mut self) {
        if !self.counts_syncs {
            return;
        }
        let (directory, fault) = (self.directory.clone(), self.sync.take());
        let syncs = Arc::clone(&self.syncs);
        sync_call::watch(Some(Box::new(move |path, is_directory, name, sync| {
            let Ok(inside) = path.strip_prefix(&directory) else { return sync() };
            let site = SyncSite::on_file(name, inside, is_directory);
            let own = site.to_string();
            let number = syncs.lock().unwrap_or_else(PoisonError::into_inner).count(site);
            let is_due = |it: &&SyncFault| it.number == number && it.site == own;
            let Some(fault) = fault.as_ref().filter(is_due) else { return sync() };
            let mut result = 0;
            let failed = fault.fail(|| {
                result = sync();
                result < 0
            });
            syncs.lock().unwrap_or_else(PoisonError::into_inner).failed = failed;
            result
        })));
    }

    /// Ends it: says what came of it, by the transactions and what was noted of those that failed.
    pub fn left(self, notes: &[FaultNotes], transactions: &[Transaction]) -> FaultLeft {
        sync_call::watch(None);
        let syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner).findings();
        let all = notes.iter().flat_map(|it| &it.errors);
        let (first, last) = (all.clone().map(|it| it.0).min(), all.max_by_key(|it| it.0));
        let failed = syncs.failure();
        let kind_and_time = match (self.has_sync, self.free_bytes) {
            (true, _) => Some((FaultKind::SyncError, failed.map(|it| it.at_ns))),
            (false, Some(_)) => Some((FaultKind::NoSpace, first)),
            (false, None) => None,
        };
        let returned_until = |until_ns| {
            let commits = transactions.iter().filter(|it| is_commit(&it.kind));
            commits.filter(|it| it.return_ns <= until_ns && it.return_ns < i64::MAX).count()
        };
        let findings = kind_and_time.map(|(kind, at_ns)| FaultFindings {
            kind,
            at_ns,
            errno: failed.map(|it| it.errno),
            free_bytes: self.free_bytes,
            ended: end_words(notes),
            last_line: last.map(|(_, error)| error.clone()).unwrap_or_default(),
            acknowledged_before: returned_until(at_ns.unwrap_or(i64::MAX)),
            acknowledged: returned_until(i64::MAX),
        });
        FaultLeft { directory: self.directory, findings, sync_sites: json!(syncs.sites) }
    }
}

/// Return how many of all that was tried failed, in words.
fn end_words(notes: &[FaultNotes]) -> String {
    let transactions: usize = notes.iter().map(|it| it.transactions.len()).sum();
    let errors: usize = notes.iter().map(|it| it.errors.len()).sum();
    let checkpoints = (errors - transactions) as u64;
    match (transactions as u64, checkpoints) {
        (0, 0) => "no transaction failed".to_owned(),
        (0, count) => format!("{} failed", plural(count, "checkpoint")),
        (count, 0) => format!("{} failed", plural(count, "transaction")),
        (one, other) => {
            format!("{} and {} failed", plural(one, "transaction"), plural(other, "checkpoint"))
        }
    }
}

/// A transaction that failed, and was rolled back where SQLite had not done so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTransaction {
    /// Whether it may be there all the same, as its COMMIT had begun.
    pub may_be_there: bool,
    /// Statements that had returned before.
    pub statements: usize,
    /// The contents of each database that its connection then read; none where it could not.
    pub seen: Vec<ContentsDigest>,
}

/// The failures of one connection.
#[derive(Debug, Clone, Default)]
pub struct FaultNotes {
    pub transactions: Vec<FailedTransaction>,
    /// The time at which each transaction or checkpoint failed, and the words.
    errors: Vec<(i64, String)>,
}

impl FaultNotes {
    /// Notes a failure, after which the next transaction can be tried.
    ///
    /// # Errors
    /// The failure itself, where it is not SQLite's.
    pub fn note(&mut self, error: WorkloadError) -> Result<(), WorkloadError> {
        match &error {
            WorkloadError::Sqlite(SqliteError::Step { .. } | SqliteError::FramesLeft { .. }) => {
                self.errors.push((now_ns(), error.to_string()));
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Notes a transaction that failed, and rolls it back.
    ///
    /// # Errors
    /// The failure itself, where it is not SQLite's.
    pub fn give_up(
        &mut self,
        error: WorkloadError,
        databases: &Databases,
        (may_be_there, statements): (bool, usize),
    ) -> Result<(), WorkloadError> {
        self.note(error)?;
        let connection = databases.connection();
        if !connection.is_autocommit() {
            // What it read is told by the databases; a failure here changes nothing of that.
            let _ = connection.execute_batch("ROLLBACK");
        }
        let all = databases.all().iter();
        let seen = all.map(|it| database_digest(connection, &it.name, &it.path));
        let seen = seen.collect::<Result<_, _>>().unwrap_or_default();
        self.transactions.push(FailedTransaction { may_be_there, statements, seen });
        Ok(())
    }
}

/// The results of a planted error beside the databases.
#[derive(Debug, Default)]
pub struct FaultLeft {
    pub directory: PathBuf,
    /// None where no error was planted.
    pub findings: Option<FaultFindings>,
    pub sync_sites: Value,
}

impl FaultLeft {
    /// Return what the manifest has of it.
    pub fn manifest(&self) -> Option<(&'static str, Value)> {
        self.findings.as_ref().map(|it| ("planted_fault", json!(it)))
    }

    /// Gives the room back, where it is taken.
    ///
    /// # Errors
    /// If it cannot be.
    pub fn make_room(&self) -> Result<(), WorkloadError> {
        match self.findings.as_ref().and_then(|it| it.free_bytes) {
            Some(_) => empty(&self.directory),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_nobody_took_needs_not_be_given_back() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILLER), "").unwrap();
        empty(folder.path()).unwrap();
        assert!(!folder.path().join(FILLER).exists());
        empty(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join(FILLER)).unwrap();
        assert!(empty(folder.path()).is_err());
    }

    #[test]
    fn a_fault_without_a_number_is_refused_with_the_remedy() {
        assert!(SyncFault::from_field("").unwrap().is_none());
        for text in ["fsync", "fsync log", "fsync log 0", "fsync log -1"] {
            let error = SyncFault::from_field(text).unwrap_err();
            assert!(error.is_wrong_use() && error.to_string().contains("fsync log 3"), "{error}");
        }
    }
}
