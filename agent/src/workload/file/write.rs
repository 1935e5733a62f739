//! Writes: reads settings and a seed; writes one record an operation, and makes it durable in the
//! way the case names.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::ReadWriteFlags;
use rustix::mm::MsyncFlags;
use serde_json::{Value, json};

use super::data_file::{self, Contents};
use super::open_file::{self, AlignedBuffer, Mapping};
use super::stream::{Shape, Stream};
use super::{Check, Performed, Step, failed};
use crate::case::{Access, FileWriteSettings, SyncMode};
use crate::workload::WorkloadError;

/// A file being written to.
pub struct Write {
    settings: FileWriteSettings,
    stream: Stream,
    path: PathBuf,
    file: File,
    mapping: Option<Mapping>,
    buffer: AlignedBuffer,
    /// Records that the file had before the first operation.
    records: u64,
}

impl Write {
    /// Makes the file and opens it; gives the stream's hash beside.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileWriteSettings,
        seed: u64,
    ) -> Result<(Self, String), WorkloadError> {
        refuse(settings)?;
        let shape = Shape::from(settings);
        let stream = Stream::new(settings.workload.word(), shape, seed)?;
        let records = if settings.access == Access::Append { 0 } else { shape.records() };
        let path = data_file::make(directory, &stream, shape, records)?;
        let file = open_file::open(&path, true, open_flags(settings.sync_mode))?;
        let length = usize::try_from(shape.records() * shape.record_bytes).unwrap_or(usize::MAX);
        let mapped = settings.sync_mode.is_mapped();
        let mapping = if mapped { Some(Mapping::new(&file, length, &path)?) } else { None };
        let record_bytes = usize::try_from(settings.record_bytes).unwrap_or(usize::MAX);
        let mut buffer = AlignedBuffer::new(record_bytes);
        stream.fill(buffer.bytes(), 0);
        let hash = stream.hash.clone();
        let settings = settings.clone();
        Ok((Self { settings, stream, path, file, mapping, buffer, records }, hash))
    }

    fn write(&mut self, record: u64) -> Result<(), WorkloadError> {
        let offset = record * self.settings.record_bytes;
        let bytes = self.buffer.bytes();
        if let Some(mapping) = &mut self.mapping {
            if self.settings.access == Access::Append {
                // A store beyond the end would be SIGBUS (mmap(2)).
                let end = offset + self.settings.record_bytes;
                self.file.set_len(end).map_err(failed("ftruncate", &self.path))?;
            }
            mapping.store(usize::try_from(offset).unwrap_or(usize::MAX), bytes);
            return Ok(());
        }
        let (step, written) = if self.settings.sync_mode == SyncMode::RwfDsync {
            let flags = ReadWriteFlags::DSYNC;
            let written = rustix::io::pwritev2(&self.file, &[IoSlice::new(bytes)], offset, flags);
            ("pwritev2", written.map_err(std::io::Error::from))
        } else {
            ("pwrite", self.file.write_at(bytes, offset))
        };
        let written = written.map_err(failed(step, &self.path))?;
        if written == bytes.len() {
            return Ok(());
        }
        // A second call for the rest would be another operation than the one asked for.
        let what = format!("took {written} of the {} bytes of record {record}", bytes.len());
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }

    fn sync(&self) -> Result<(), WorkloadError> {
        let (file, path) = (&self.file, &self.path);
        let sync_mapping = |flags| {
            self.mapping.as_ref().map_or(Ok(()), |mapping: &Mapping| mapping.sync(flags, path))
        };
        match self.settings.sync_mode {
            SyncMode::Fsync => file.sync_all().map_err(failed("fsync", path)),
            SyncMode::Fdatasync => file.sync_data().map_err(failed("fdatasync", path)),
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
        return Err(WorkloadError::Refused(format!(
            "sync_mode {sync_mode} has no call to make every {sync_every} operations; \
             sync_every must be 1"
        )));
    }
    if sync_mode.is_direct() {
        open_file::refuse_unaligned(settings.record_bytes)?;
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

impl Step for Write {
    fn verb(&self) -> &'static str {
        "write"
    }

    fn get_ready(&mut self, index: u64) -> Result<(), WorkloadError> {
        Stream::stamp(self.buffer.bytes(), index);
        Ok(())
    }

    fn perform(
        &mut self,
        index: u64,
        now_ns: &dyn Fn() -> i64,
    ) -> Result<Performed, WorkloadError> {
        let record = self.stream.records[usize::try_from(index).unwrap_or(usize::MAX)];
        let begin_ns = now_ns();
        self.write(record)?;
        if self.settings.sync_mode.is_in_write() {
            return Ok(Performed { commit_ns: begin_ns, sync_calls: 0 });
        }
        let commit_ns = now_ns();
        let due = self.settings.sync_mode.has_call()
            && (index + 1).is_multiple_of(self.settings.sync_every);
        if due {
            self.sync()?;
        }
        Ok(Performed { commit_ns, sync_calls: due.into() })
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(failed("fcntl", &self.path))?;
        Ok(json!({
            "open_flags": open_file::names(flags),
            "records": self.records,
            "sync_mode": self.settings.sync_mode.word(),
        }))
    }

    fn close(self: Box<Self>) -> Box<dyn Check> {
        let shape = Shape::from(&self.settings);
        Box::new(Contents::new(self.path, self.stream, shape, self.records, true))
    }
}
