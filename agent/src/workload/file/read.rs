//! Reads: reads settings and a seed; reads one record an operation, of a file that the kernel's
//! caches hold nothing of at first, and makes sure that it is the one that was put there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::data_file::{self, Contents};
use super::open_file::{self, AlignedBuffer};
use super::stream::{INITIAL, Shape, Stream};
use super::{Check, Performed, Step, failed};
use crate::case::{Access, FileReadSettings, ReadMode};
use crate::workload::WorkloadError;

/// A file being read.
pub struct Read {
    settings: FileReadSettings,
    stream: Stream,
    path: PathBuf,
    file: File,
    buffer: AlignedBuffer,
}

impl Read {
    /// Makes the file and opens it; gives the stream's hash beside.
    ///
    /// # Errors
    /// If a setting is impossible, or a step fails.
    pub fn prepare(
        directory: &Path,
        settings: &FileReadSettings,
        seed: u64,
    ) -> Result<(Self, String), WorkloadError> {
        let mut flags = OFlags::empty();
        if settings.read_mode == ReadMode::ODirect {
            open_file::refuse_unaligned(settings.record_bytes)?;
            flags = OFlags::DIRECT;
        }
        if settings.access == Access::Append {
            return Err(WorkloadError::Refused("access append is for writes alone".into()));
        }
        let shape = Shape::from(settings);
        let stream = Stream::new(settings.workload.word(), shape, seed)?;
        let path = data_file::make(directory, &stream, shape, shape.records())?;
        let file = open_file::open(&path, false, flags)?;
        let buffer =
            AlignedBuffer::new(usize::try_from(settings.record_bytes).unwrap_or(usize::MAX));
        let hash = stream.hash.clone();
        Ok((Self { settings: settings.clone(), stream, path, file, buffer }, hash))
    }
}

impl Step for Read {
    fn verb(&self) -> &'static str {
        "read"
    }

    fn get_ready(&mut self, _: u64) -> Result<(), WorkloadError> {
        // What the last operation read shall not pass for what this one reads.
        Stream::stamp(self.buffer.bytes(), !INITIAL);
        Ok(())
    }

    fn perform(
        &mut self,
        index: u64,
        now_ns: &dyn Fn() -> i64,
    ) -> Result<Performed, WorkloadError> {
        let record = self.stream.records[usize::try_from(index).unwrap_or(usize::MAX)];
        let offset = record * self.settings.record_bytes;
        let commit_ns = now_ns();
        let bytes = self.buffer.bytes();
        let found = self.file.read_at(bytes, offset).map_err(failed("pread", &self.path))?;
        let stamp = INITIAL.to_le_bytes();
        let compared = bytes.len().min(stamp.len());
        if found < bytes.len() || bytes[..compared] != stamp[..compared] {
            let what = format!("gave {found} bytes of record {record}, not those put there");
            return Err(WorkloadError::Contents { path: self.path.clone(), what });
        }
        Ok(Performed { commit_ns, sync_calls: 0 })
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        let flags = rustix::fs::fcntl_getfl(&self.file).map_err(failed("fcntl", &self.path))?;
        Ok(json!({
            "open_flags": open_file::names(flags),
            "records": Shape::from(&self.settings).records(),
        }))
    }

    fn close(self: Box<Self>) -> Box<dyn Check> {
        let shape = Shape::from(&self.settings);
        Box::new(Contents::new(self.path, self.stream, shape, shape.records(), false))
    }
}
