//! Truncation: each thread writes its own file anew and cuts it to a length, an operation after the
//! other. The smallest kind of workload; a test adds it to a copy of the tree.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::{WorkloadError, step_error};
use super::files::remains::{Damage, FilesOfThread, own_name};
use super::files::{FileTask, FileThreads};
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use super::ledger::LedgerEntry;
use super::power_cut::Progress;
use super::threads::task::{Plan, Task};
use crate::record::words;
use crate::tables::timeline::now_ns;

pub const KIND: WorkloadKind =
    WorkloadKind::new::<FileTruncateSettings>(FileTruncateWorkload::WORDS);

/// The bytes that an operation writes before it truncates.
const LINE: &[u8] = b"a line that is cut";

words! {
    /// Its one word.
    FileTruncateWorkload { Truncate = "file-truncate" }
}

/// The fields of its records.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileTruncateSettings {
    workload: FileTruncateWorkload,
    transactions: u64,
    duration_ms: u64,
    warmup_transactions: u64,
    threads: NonZeroU64,
    truncated_bytes: u64,
}

impl FileTruncateSettings {
    fn plan(&self) -> Plan {
        Plan::new(self.warmup_transactions, self.transactions, self.duration_ms)
    }
}

impl WorkloadRequest for FileTruncateSettings {
    fn space_needed(&self) -> Space {
        let files = self.threads.get();
        Space { bytes: self.truncated_bytes.saturating_mul(files), files }
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload file-truncate syncs nothing")
    }

    fn prepare(&self, directory: &Path, _: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let make = |thread| {
            let path = directory.join(own_name("truncated", thread));
            let file = File::create_new(&path).map_err(step_error("create", &path))?;
            Ok(Truncation { path, file, truncated_bytes: self.truncated_bytes })
        };
        Ok(Box::new(FileThreads::new(self.threads.get(), self.plan(), false, make)?))
    }
}

/// One thread's file.
struct Truncation {
    path: PathBuf,
    file: File,
    truncated_bytes: u64,
}

impl Task for Truncation {
    fn perform(&mut self, begin_ns: i64) -> Result<LedgerEntry, WorkloadError> {
        self.file.write_all(LINE).map_err(step_error("write", &self.path))?;
        let commit_ns = now_ns();
        self.file.set_len(self.truncated_bytes).map_err(step_error("ftruncate", &self.path))?;
        Ok(LedgerEntry {
            verb: "truncate",
            databases: 0,
            sync_calls: 0,
            busy_retries: 0,
            wal_frames: 0,
            begin_ns,
            commit_ns,
            return_ns: now_ns(),
        })
    }
}

impl FileTask for Truncation {
    fn configuration(&self) -> Result<Value, WorkloadError> {
        Ok(json!({ "truncated_bytes": self.truncated_bytes }))
    }

    fn hash(&self, performed: u64) -> Sha256 {
        let mut hasher = Sha256::new();
        (0..performed).for_each(|_| hasher.update(self.truncated_bytes.to_le_bytes()));
        hasher
    }

    fn close(self, _: u64) -> Box<dyn FilesOfThread> {
        Box::new(TruncatedFile { path: self.path, length_bytes: self.truncated_bytes })
    }
}

/// The state that must be left of it.
struct TruncatedFile {
    path: PathBuf,
    length_bytes: u64,
}

impl FilesOfThread for TruncatedFile {
    fn check(&self) -> Result<(), WorkloadError> {
        let found = self.path.metadata().map_err(step_error("stat", &self.path))?.len();
        if found == self.length_bytes {
            return Ok(());
        }
        let what = format!("is {found} bytes long where {} were due", self.length_bytes);
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }

    fn judge(&self, _: Progress) -> Result<Damage, WorkloadError> {
        Err(WorkloadError::refusal("workload file-truncate syncs nothing"))
    }
}
