//! The file that records are written to or read from: makes it, and checks in the end that every
//! record holds what the last write put there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::left::{Damage, FilesOfThread, own_name};
use super::stream::{INITIAL, RecordStream, Shape};
use super::survived;
use crate::workload::error::{WorkloadError, failed};
use crate::workload::power_cut::Progress;

/// Bytes that one write of the preparation has, or one record where that is longer: a page. What
/// is written in longer pieces stands in the page cache in large folios (ext4 since Linux 6.16,
/// XFS since 6.6), which every later small write and sync goes through; a file that a program
/// wrote record by record does not. With 1 MiB here, a random 4 KiB write and fsync on ext4 of
/// Linux 6.18 took an eighth longer (bench.workload).
const CHUNK_BYTES: usize = 1 << 12;

/// Bytes that are read at a time when the file is checked.
const CHECKED_BYTES: usize = 1 << 20;

/// Makes a thread's file, of `records` records that no operation wrote.
///
/// # Errors
/// If it cannot be made.
pub fn make(
    directory: &Path,
    thread: u64,
    stream: &RecordStream,
    shape: Shape,
    records: u64,
) -> Result<PathBuf, WorkloadError> {
    let path = directory.join(own_name("data", thread));
    let mut file = File::create(&path).map_err(failed("create", &path))?;
    let mut record = vec![0; usize::try_from(shape.record_bytes).unwrap_or(usize::MAX)];
    stream.fill(&mut record, INITIAL);
    let together = (CHUNK_BYTES / record.len()).max(1);
    let chunk = record.repeat(together);
    let (chunks, rest) = (records / together as u64, records % together as u64);
    for _ in 0..chunks {
        file.write_all(&chunk).map_err(failed("fill", &path))?;
    }
    for _ in 0..rest {
        file.write_all(&record).map_err(failed("fill", &path))?;
    }
    Ok(path)
}

/// Refuses files that take more than three quarters of their filesystem: the rest is for the
/// filesystem's own, and what a log-structured one needs in order to clean.
///
/// # Errors
/// If they do, or the filesystem does not tell.
pub fn refuse_large(directory: &Path, file_bytes: u64, files: u64) -> Result<(), WorkloadError> {
    let space = rustix::fs::statvfs(directory).map_err(failed("statvfs", directory))?;
    let most = space.f_blocks * space.f_frsize / 4 * 3;
    if file_bytes.saturating_mul(files) > most {
        return Err(WorkloadError::refused(format!(
            "{files} x {file_bytes} bytes of files take more than three quarters of {}, {most} \
             bytes; lower file_bytes or threads",
            directory.display()
        )));
    }
    Ok(())
}

/// What the file must hold when the operations are done.
pub struct Records {
    path: PathBuf,
    stream: RecordStream,
    record_bytes: u64,
    /// Records that were made before the first operation.
    records: u64,
    performed: u64,
}

impl Records {
    /// Of a file of which `records` records were made before `performed` operations of `stream`.
    pub fn new(
        path: PathBuf,
        stream: RecordStream,
        shape: Shape,
        records: u64,
        performed: u64,
    ) -> Self {
        Self { path, stream, record_bytes: shape.record_bytes, records, performed }
    }
}

impl FilesOfThread for Records {
    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what: String| WorkloadError::Contents { path: self.path.clone(), what };
        let read_back = |source: std::io::Error| failed("read back", &self.path)(source);
        // The last operation that wrote each record.
        let writes = (0..).zip(self.stream.again(self.performed)?).filter(|(_, it)| !it.is_read);
        let writers: BTreeMap<u64, u64> = writes.map(|(index, it)| (it.record, index)).collect();
        let grown = writers.last_key_value().map_or(0, |(&record, _)| record + 1);
        let records = self.records.max(grown);
        let file = File::open(&self.path).map_err(read_back)?;
        let found = file.metadata().map_err(read_back)?.len();
        let due = records * self.record_bytes;
        if found != due {
            return Err(wrong(format!("is {found} bytes long where {due} were due")));
        }
        let mut file = BufReader::with_capacity(CHECKED_BYTES, file);
        let mut wanted = vec![0; usize::try_from(self.record_bytes).unwrap_or(usize::MAX)];
        let mut found = wanted.clone();
        self.stream.fill(&mut wanted, INITIAL);
        for record in 0..records {
            RecordStream::stamp(&mut wanted, writers.get(&record).copied().unwrap_or(INITIAL));
            file.read_exact(&mut found).map_err(read_back)?;
            if found != wanted {
                return Err(wrong(format!("record {record} does not hold what was written last")));
            }
        }
        Ok(())
    }

    fn survived(&self, progress: Progress) -> Result<Damage, WorkloadError> {
        let size = (self.records, self.record_bytes);
        survived::survived(&self.path, &self.stream, size, progress)
    }
}
