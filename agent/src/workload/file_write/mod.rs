//! Writes records of one file for each thread, in the order of a drawn stream, synced as the record
//! asks for.

mod atomic;

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::mm::MsyncFlags;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use super::error::WorkloadError;
use super::files::FileThreads;
use super::files::engine::{self, AlignedBuffer, FileSettings, MappedFile};
use super::files::remains::{self, FilesOfThread, Records};
use super::kind::{Space, Workload, WorkloadKind, WorkloadRequest};
use crate::record::words;
use crate::tables::timeline::now_ns;
use crate::workload::error::step_error;
use crate::workload::files::FileTask;
use crate::workload::files::engine::{Engine, Way};
use crate::workload::files::stream::{Access, INITIAL, RecordOperation, RecordStream};
use crate::workload::ledger::LedgerEntry;
use crate::workload::threads::task::Task;

pub const KIND: WorkloadKind = WorkloadKind::new::<FileWriteSettings>(FileWriteWorkload::WORDS);

impl WorkloadRequest for FileWriteSettings {
    /// The bytes of all files: where records are appended, of those alone.
    fn space_needed(&self) -> Space {
        let files = self.files.threads.get();
        let appended = self.files.plan().count().unwrap_or(0);
        let bytes = match self.files.access {
            Access::Append => appended.saturating_mul(self.files.record_bytes),
            _ => self.files.file_bytes.saturating_mul(files),
        };
        Space { bytes, files }
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let threads = self.files.threads.get();
        remains::refuse_large(directory, self.files.file_bytes, threads)?;
        let worker = |thread| WriteTask::prepare(directory, self, seed, thread);
        Ok(Box::new(FileThreads::new(threads, self.files.plan(), self.read_percent > 0, worker)?))
    }
}

words! {
    /// Its one word.
    FileWriteWorkload { Write = "file-write" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FileWriteSettings {
    pub workload: FileWriteWorkload,
    #[serde(flatten)]
    pub files: FileSettings,
    pub sync_mode: SyncMode,
    pub sync_every: u64,
    pub read_percent: u64,
}

words! {
    /// The way a write is made, and made durable.
    SyncMode {
        None = "none", OSync = "o_sync", ODsync = "o_dsync", Fsync = "fsync",
        Fdatasync = "fdatasync", ODirect = "o_direct", ODirectSync = "o_direct_sync",
        Mmap = "mmap", MmapAsync = "mmap_async", MmapSync = "mmap_sync",
        SyncFileRange = "sync_file_range", RwfDsync = "rwf_dsync", RwfAtomic = "rwf_atomic",
    }
}

impl SyncMode {
    /// Return whether a store into mapped memory takes the place of write(2).
    pub fn is_mapped(self) -> bool {
        matches!(self, Self::Mmap | Self::MmapAsync | Self::MmapSync)
    }

    /// Return whether the page cache is passed by.
    pub fn is_direct(self) -> bool {
        matches!(self, Self::ODirect | Self::ODirectSync | Self::RwfAtomic)
    }

    /// Return whether each write is durable when it returns, with no call after it.
    pub fn is_in_write(self) -> bool {
        matches!(
            self,
            Self::OSync | Self::ODsync | Self::ODirectSync | Self::RwfDsync | Self::RwfAtomic
        )
    }

    /// Return whether a call after the write makes it durable, or starts to.
    pub fn has_call(self) -> bool {
        matches!(
            self,
            Self::Fsync | Self::Fdatasync | Self::MmapAsync | Self::MmapSync | Self::SyncFileRange
        )
    }
}

/// Records longer than this take a while to be stamped, which is no part of the operation.
const LONG_RECORD_BYTES: u64 = 64 << 10;

/// A thread's file being written to.
pub struct WriteTask {
    settings: FileWriteSettings,
    stream: RecordStream,
    path: PathBuf,
    file: File,
    mapping: Option<MappedFile>,
    way: Way,
    buffer: AlignedBuffer,
    /// The memory that is read into.
    read_buffer: AlignedBuffer,
    /// Records that the file had before the first operation.
    records: u64,
    /// The number of the next operation.
    index: u64,
    /// The last operation that wrote each record; empty where nothing is read.
    writers: Vec<u64>,
}

impl WriteTask {
    /// Makes the thread's file and opens it.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileWriteSettings,
        seed: u64,
        thread: u64,
    ) -> Result<Self, WorkloadError> {
        refuse(settings)?;
        let shape = settings.files.shape(thread, settings.read_percent);
        let stream = RecordStream::new(shape, seed, thread)?;
        let records = if settings.files.access == Access::Append { 0 } else { shape.records() };
        let path = remains::make(directory, thread, &stream, records)?;
        let file = engine::open(&path, true, open_flags(settings.sync_mode))?;
        if settings.sync_mode == SyncMode::RwfAtomic {
            atomic::refuse(&file, &path, settings.files.record_bytes)?;
        }
        let length = usize::try_from(shape.records() * shape.record_bytes).unwrap_or(usize::MAX);
        let mapped = settings.sync_mode.is_mapped();
        let mapping = if mapped { Some(MappedFile::new(&file, length, &path)?) } else { None };
        let record_bytes = settings.files.record_length();
        let mut buffer = AlignedBuffer::new(record_bytes);
        let mut way = Way::new(settings.files.engine)?;
        way.refuse_unpolled(&file, buffer.bytes())?;
        stream.fill(buffer.bytes(), 0);
        let reads = settings.read_percent > 0;
        let written = if reads { usize::try_from(records).unwrap_or(usize::MAX) } else { 0 };
        Ok(Self {
            settings: settings.clone(),
            stream,
            path,
            file,
            mapping,
            way,
            buffer,
            read_buffer: AlignedBuffer::new(if reads { record_bytes } else { 0 }),
            records,
            index: 0,
            writers: vec![INITIAL; written],
        })
    }

    fn write(&mut self, record: u64) -> Result<(), WorkloadError> {
        let offset = record * self.settings.files.record_bytes;
        let bytes = self.buffer.bytes();
        if let Some(mapping) = &mut self.mapping {
            if self.settings.files.access == Access::Append {
                // A store beyond the end would be SIGBUS (mmap(2)).
                let end = offset + self.settings.files.record_bytes;
                self.file.set_len(end).map_err(step_error("ftruncate", &self.path))?;
            }
            mapping.store(usize::try_from(offset).unwrap_or(usize::MAX), bytes);
            return Ok(());
        }
        let (step, flags) = match self.settings.sync_mode {
            SyncMode::RwfDsync => ("pwritev2", ReadWriteFlags::DSYNC),
            SyncMode::RwfAtomic => ("pwritev2", ReadWriteFlags::DSYNC | atomic::RWF_ATOMIC),
            _ => ("pwrite", ReadWriteFlags::empty()),
        };
        let written = self.way.write(&self.file, bytes, offset, flags);
        let written = written.map_err(step_error(step, &self.path))?;
        if written == bytes.len() {
            return Ok(());
        }
        // A second call for the rest would be another operation than the one asked for.
        let what = format!("took {written} of the {} bytes of record {record}", bytes.len());
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }

    /// Reads a record, and makes sure that it is the one written last.
    fn read(&mut self, record: u64) -> Result<(), WorkloadError> {
        let offset = record * self.settings.files.record_bytes;
        let bytes = self.read_buffer.bytes();
        let found = if let Some(mapping) = &self.mapping {
            mapping.load(usize::try_from(offset).unwrap_or(usize::MAX), bytes);
            bytes.len()
        } else {
            self.way.read(&self.file, bytes, offset).map_err(step_error("pread", &self.path))?
        };
        let writer = self.writers[usize::try_from(record).unwrap_or(usize::MAX)];
        if found == bytes.len() && RecordStream::is_stamped(bytes, writer) {
            return Ok(());
        }
        let what = format!("gave {found} bytes of record {record}, not those written last");
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }

    fn sync(&mut self) -> Result<(), WorkloadError> {
        let (file, path, way) = (&self.file, &self.path, &mut self.way);
        let sync_mapping = |flags| {
            self.mapping.as_ref().map_or(Ok(()), |mapping: &MappedFile| mapping.sync(flags, path))
        };
        match self.settings.sync_mode {
            SyncMode::Fsync => way.sync(file, false).map_err(step_error("fsync", path)),
            SyncMode::Fdatasync => way.sync(file, true).map_err(step_error("fdatasync", path)),
            SyncMode::SyncFileRange => engine::sync_file_range(file, path),
            SyncMode::MmapSync => sync_mapping(MsyncFlags::SYNC),
            SyncMode::MmapAsync => sync_mapping(MsyncFlags::ASYNC),
            _ => Ok(()),
        }
    }
}

/// Refuses what would measure something else than it says.
fn refuse(settings: &FileWriteSettings) -> Result<(), WorkloadError> {
    let FileWriteSettings { sync_mode, sync_every, .. } = settings;
    if *sync_every == 0 || (*sync_every > 1 && !sync_mode.has_call()) {
        return Err(WorkloadError::refusal(format!(
            "sync_mode {sync_mode} has no call to make every {sync_every} operations; \
             sync_every must be 1"
        )));
    }
    if sync_mode.is_mapped() && settings.files.engine != Engine::Calls {
        return Err(WorkloadError::refusal(format!(
            "sync_mode {sync_mode} stores into memory, which engine {} has no part in",
            settings.files.engine
        )));
    }
    if sync_mode.is_direct() {
        engine::refuse_unaligned(settings.files.record_bytes)?;
    }
    Ok(())
}

fn open_flags(sync_mode: SyncMode) -> OFlags {
    match sync_mode {
        SyncMode::OSync => OFlags::SYNC,
        SyncMode::ODsync => engine::DSYNC,
        SyncMode::ODirect | SyncMode::RwfAtomic => OFlags::DIRECT,
        SyncMode::ODirectSync => OFlags::DIRECT | OFlags::SYNC,
        _ => OFlags::empty(),
    }
}

impl Task for WriteTask {
    #[inline]
    fn perform(&mut self, last_ns: i64) -> Result<LedgerEntry, WorkloadError> {
        let RecordOperation { record, is_read } = self.stream.draw();
        let index = self.index;
        self.index += 1;
        let mut done = LedgerEntry::begin("write", last_ns);
        if is_read {
            self.read(record)?;
            done.verb = "read";
            done.return_ns = now_ns();
            return Ok(done);
        }
        RecordStream::stamp(self.buffer.bytes(), index);
        if self.settings.files.record_bytes > LONG_RECORD_BYTES {
            done.begin_ns = now_ns();
            done.commit_ns = done.begin_ns;
        }
        if self.settings.files.access == Access::Append && record >= self.stream.limit {
            return Err(WorkloadError::refusal(format!(
                "file_bytes ran out after {index} operations, before duration_ms had passed; \
                 raise file_bytes or lower duration_ms"
            )));
        }
        self.write(record)?;
        if let Some(writer) = self.writers.get_mut(usize::try_from(record).unwrap_or(usize::MAX)) {
            *writer = index;
        }
        let due = self.settings.sync_mode.has_call()
            && (index + 1).is_multiple_of(self.settings.sync_every);
        if due {
            done.commit_ns = now_ns();
            self.sync()?;
            done.sync_calls = 1;
        }
        done.return_ns = now_ns();
        if !due && !self.settings.sync_mode.is_in_write() {
            done.commit_ns = done.return_ns;
        }
        Ok(done)
    }
}

impl FileTask for WriteTask {
    fn configuration(&self) -> Result<Value, WorkloadError> {
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(step_error("fcntl", &self.path))?;
        Ok(json!({
            "open_flags": engine::names(flags),
            "records": self.records,
            "sync_mode": self.settings.sync_mode.word(),
            "engine": self.settings.files.engine.word(),
        }))
    }

    fn hash(&self, performed: u64) -> Sha256 {
        self.stream.hash(self.settings.workload.word(), performed)
    }

    fn close(self, performed: u64) -> Box<dyn FilesOfThread> {
        let Self { path, stream, records, .. } = self;
        let is_atomic = self.settings.sync_mode == SyncMode::RwfAtomic;
        Box::new(Records { path, stream, records, performed, is_atomic })
    }
}

#[cfg(test)]
#[path = "write_test.rs"]
pub mod tests;
