//! Reads records of one file for each thread, in the order of a drawn stream, through the page
//! cache or past it.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use super::error::WorkloadError;
use super::files::FileThreads;
use super::files::engine::{self, AlignedBuffer, FileSettings};
use super::files::remains::{self, FilesOfThread, Records};
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use crate::record::words;
use crate::tables::timeline::now_ns;
use crate::workload::error::step_error;
use crate::workload::files::FileTask;
use crate::workload::files::engine::Way;
use crate::workload::files::stream::{INITIAL, RecordStream};
use crate::workload::ledger::LedgerEntry;
use crate::workload::threads::task::Task;

pub const KIND: WorkloadKind = WorkloadKind::new::<FileReadSettings>(FileReadWorkload::WORDS);

impl WorkloadRequest for FileReadSettings {
    /// The bytes of all files.
    fn space_needed(&self) -> Space {
        let files = self.files.threads.get();
        Space { bytes: self.files.file_bytes.saturating_mul(files), files }
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload file-read changes nothing")
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let threads = self.files.threads.get();
        remains::refuse_large(directory, self.files.file_bytes, threads)?;
        let worker = |thread| ReadTask::prepare(directory, self, seed, thread);
        Ok(Box::new(FileThreads::new(threads, self.files.plan(), true, worker)?))
    }
}

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

/// A thread's file being read.
pub struct ReadTask {
    settings: FileReadSettings,
    stream: RecordStream,
    path: PathBuf,
    file: File,
    way: Way,
    buffer: AlignedBuffer,
}

impl ReadTask {
    /// Makes the thread's file and opens it.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileReadSettings,
        seed: u64,
        thread: u64,
    ) -> Result<Self, WorkloadError> {
        let mut flags = OFlags::empty();
        if settings.read_mode == ReadMode::ODirect {
            engine::refuse_unaligned(settings.files.record_bytes)?;
            flags = OFlags::DIRECT;
        }
        let shape = settings.files.shape(thread, 100);
        let stream = RecordStream::new(shape, seed, thread)?;
        let path = remains::make(directory, thread, &stream, shape.records())?;
        let file = engine::open(&path, false, flags)?;
        let record_bytes = settings.files.record_length();
        let mut buffer = AlignedBuffer::new(record_bytes);
        let mut way = Way::new(settings.files.engine)?;
        way.refuse_unpolled(&file, buffer.bytes())?;
        Ok(Self { settings: settings.clone(), stream, path, file, way, buffer })
    }
}

impl Task for ReadTask {
    #[inline]
    fn perform(&mut self, last_ns: i64) -> Result<LedgerEntry, WorkloadError> {
        let record = self.stream.draw().record;
        let offset = record * self.settings.files.record_bytes;
        let bytes = self.buffer.bytes();
        // What the last operation read shall not pass for what this one reads.
        RecordStream::stamp(bytes, !INITIAL);
        let found = self.way.read(&self.file, bytes, offset);
        let found = found.map_err(step_error("pread", &self.path))?;
        let done = LedgerEntry { return_ns: now_ns(), ..LedgerEntry::begin("read", last_ns) };
        if found < bytes.len() || !RecordStream::is_stamped(bytes, INITIAL) {
            let what = format!("gave {found} bytes of record {record}, not those put there");
            return Err(WorkloadError::Contents { path: self.path.clone(), what });
        }
        Ok(done)
    }
}

impl FileTask for ReadTask {
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(step_error("fcntl", &self.path))?;
        Ok(json!({
            "open_flags": engine::names(flags),
            "records": self.stream.limit,
            "engine": self.settings.files.engine.word(),
        }))
    }

    fn hash(&self, performed: u64) -> Sha256 {
        self.stream.hash(self.settings.workload.word(), performed)
    }

    fn close(self, performed: u64) -> Box<dyn FilesOfThread> {
        let Self { path, stream, .. } = self;
        let records = stream.limit;
        Box::new(Records { path, records, stream, performed, is_atomic: false })
    }
}

#[cfg(test)]
pub mod tests {
    // Reads of real files on this machine, compared with the kernel's own count of bytes and calls.
    use std::num::NonZeroU64;

    use super::*;
    use crate::workload::files::engine::FileSettings;
    use crate::workload::files::engine::tests::file_settings;
    use crate::workload::files::stream::Access;
    use crate::workload::files::watched::{OPERATIONS, refusal, run, run_in};
    use crate::workload::kind::WorkloadRequest;

    #[test]
    fn reads_read_each_record_once() {
        for read_mode in [ReadMode::Buffered, ReadMode::ODirect] {
            for access in [Access::Sequential, Access::Random, Access::Rewrite] {
                let directory = tempfile::tempdir().unwrap();
                let files = FileSettings { access, ..file_settings() };
                let settings = FileReadSettings { read_mode, files, ..read_settings() };
                let workload = settings.prepare(directory.path(), 5).unwrap();
                assert!(workload.needs_cold_cache());
                let (closed, increase) = run(workload);
                // The first look at the counts is itself read, by a few calls of some hundred
                // bytes.
                let calls = increase["syscr"];
                assert!((OPERATIONS..OPERATIONS + 9).contains(&calls), "{read_mode} {calls}");
                let more_bytes = increase["rchar"] - OPERATIONS * 4096;
                assert!(more_bytes < 1024, "{read_mode} {more_bytes}");
                assert!(closed.transactions.iter().all(|row| row.kind == "read"));
            }
        }
    }

    #[test]
    fn each_thread_reads_a_file_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let threads = NonZeroU64::new(4).unwrap();
        let files = FileSettings { threads, ..file_settings() };
        run_in(directory.path(), &FileReadSettings { files, ..read_settings() });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
    }

    #[test]
    fn reading_with_access_append_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let files = FileSettings { access: Access::Append, ..file_settings() };
        let append = FileReadSettings { files, ..read_settings() };
        assert!(refusal(append.prepare(directory.path(), 1)).contains("append"));
    }

    /// A small case of random reads.
    pub fn read_settings() -> FileReadSettings {
        FileReadSettings {
            workload: FileReadWorkload::Read,
            files: file_settings(),
            read_mode: ReadMode::Buffered,
        }
    }
}
