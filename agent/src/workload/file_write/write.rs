//! Writes, and reads between them: reads settings and a seed; writes or reads one record an
//! operation, makes a write durable in the way the case names, and makes sure that a read gives
//! what was written last.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::mm::MsyncFlags;
use serde_json::{Value, json};
use sha2::Sha256;

use super::settings::{FileWriteSettings, SyncMode};
use crate::tables::timeline::now_ns;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::files::aligned_buffer::AlignedBuffer;
use crate::workload::files::data_file::{self, Records};
use crate::workload::files::engine::{Engine, Way};
use crate::workload::files::left::FilesOfThread;
use crate::workload::files::open_file::{self, MappedFile};
use crate::workload::files::stream::{Access, INITIAL, RecordOperation, RecordStream, Shape};
use crate::workload::files::threads::FileTask;
use crate::workload::ledger::Done;
use crate::workload::threads::task::Task;

/// Records longer than this take a while to be stamped, which is no part of the operation.
const LONG_RECORD_BYTES: u64 = 64 << 10;

/// A thread's file being written to.
pub struct WriteTask {
    settings: FileWriteSettings,
    shape: Shape,
    stream: RecordStream,
    path: PathBuf,
    file: File,
    mapping: Option<MappedFile>,
    way: Way,
    buffer: AlignedBuffer,
    /// Where reads go.
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
        let path = data_file::make(directory, thread, &stream, shape, records)?;
        let file = open_file::open(&path, true, open_flags(settings.sync_mode))?;
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
            shape,
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
                self.file.set_len(end).map_err(failed("ftruncate", &self.path))?;
            }
            mapping.store(usize::try_from(offset).unwrap_or(usize::MAX), bytes);
            return Ok(());
        }
        let (step, flags) = match self.settings.sync_mode {
            SyncMode::RwfDsync => ("pwritev2", ReadWriteFlags::DSYNC),
            _ => ("pwrite", ReadWriteFlags::empty()),
        };
        let written = self.way.write(&self.file, bytes, offset, flags);
        let written = written.map_err(failed(step, &self.path))?;
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
            self.way.read(&self.file, bytes, offset).map_err(failed("pread", &self.path))?
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
            SyncMode::Fsync => way.sync(file, false).map_err(failed("fsync", path)),
            SyncMode::Fdatasync => way.sync(file, true).map_err(failed("fdatasync", path)),
            SyncMode::SyncFileRange => open_file::sync_file_range(file, path),
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
        return Err(WorkloadError::refused(format!(
            "sync_mode {sync_mode} has no call to make every {sync_every} operations; \
             sync_every must be 1"
        )));
    }
    if sync_mode.is_mapped() && settings.files.engine != Engine::Calls {
        return Err(WorkloadError::refused(format!(
            "sync_mode {sync_mode} stores into memory, which engine {} has no part in",
            settings.files.engine
        )));
    }
    if sync_mode.is_direct() {
        open_file::refuse_unaligned(settings.files.record_bytes)?;
    }
    Ok(())
}

fn open_flags(sync_mode: SyncMode) -> OFlags {
    match sync_mode {
        SyncMode::OSync => OFlags::SYNC,
        SyncMode::ODsync => open_file::DSYNC,
        SyncMode::ODirect => OFlags::DIRECT,
        SyncMode::ODirectSync => OFlags::DIRECT | OFlags::SYNC,
        _ => OFlags::empty(),
    }
}

impl Task for WriteTask {
    #[inline]
    fn perform(&mut self, last_ns: i64) -> Result<Done, WorkloadError> {
        let RecordOperation { record, is_read } = self.stream.draw();
        let index = self.index;
        self.index += 1;
        let mut done = Done::begun("write", last_ns);
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
        if self.settings.files.access == Access::Append && record >= self.stream.limit() {
            return Err(WorkloadError::refused(format!(
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
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(failed("fcntl", &self.path))?;
        Ok(json!({
            "open_flags": open_file::names(flags),
            "records": self.records,
            "sync_mode": self.settings.sync_mode.word(),
            "engine": self.settings.files.engine.word(),
        }))
    }

    fn hash(&self, performed: u64) -> Result<Sha256, WorkloadError> {
        self.stream.hash(self.settings.workload.word(), performed)
    }

    fn close(self, performed: u64) -> Box<dyn FilesOfThread> {
        Box::new(Records::new(self.path, self.stream, self.shape, self.records, performed))
    }
}
