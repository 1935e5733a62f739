//! One pass over a file: reads settings and a seed; writes or reads one record an operation, syncs
//! as often as the case says and at the end, and makes sure that a read gives what was written
//! last.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use sha2::{Digest, Sha256};

use super::settings::{FilePassesSettings, Pass};
use crate::tables::timeline::now_ns;
use crate::workload::draw::{below, generator};
use crate::workload::error::{WorkloadError, failed};
use crate::workload::files::aligned_buffer::AlignedBuffer;
use crate::workload::files::stream::{INITIAL, RecordStream};
use crate::workload::kind::Remains;
use crate::workload::ledger::Done;
use crate::workload::power_cut::{Cut, Survival};
use crate::workload::threads::task::{Task, Worker};

/// The file, and what it holds.
pub struct PassedFile {
    pub path: PathBuf,
    pub file: File,
    record_bytes: u64,
    sync_every: u64,
    random: ChaCha8Rng,
    /// What a record holds, but for its stamps.
    buffer: AlignedBuffer,
    read_buffer: AlignedBuffer,
    /// Of each record, the number of the operation that wrote it last.
    writers: Vec<u64>,
    /// The number of the next operation, over all passes.
    index: u64,
    performed: Sha256,
}

impl PassedFile {
    /// An empty file.
    pub fn new(path: PathBuf, file: File, settings: &FilePassesSettings, seed: u64) -> Self {
        let record_bytes = settings.record_bytes;
        let length = usize::try_from(record_bytes).unwrap_or(usize::MAX);
        let mut random = generator(seed, 0);
        let mut buffer = AlignedBuffer::new(length);
        random.fill_bytes(buffer.bytes());
        RecordStream::stamp(buffer.bytes(), INITIAL);
        let performed = Sha256::new().chain_update(buffer.as_slice());
        let records = usize::try_from(settings.records()).unwrap_or(usize::MAX);
        Self {
            path,
            file,
            record_bytes,
            sync_every: settings.sync_every,
            random,
            buffer,
            read_buffer: AlignedBuffer::new(length),
            writers: vec![INITIAL; records],
            index: 0,
            performed,
        }
    }

    /// Over the workload's word, the contents of a record and all operations in order.
    pub fn hash(&self, word: &str) -> Sha256 {
        self.performed.clone().chain_update(word)
    }

    fn write(&mut self, record: u64) -> Result<(), WorkloadError> {
        let written = self.file.write_all_at(self.buffer.as_slice(), record * self.record_bytes);
        written.map_err(failed("pwrite", &self.path))?;
        self.writers[usize::try_from(record).unwrap_or(usize::MAX)] = self.index;
        Ok(())
    }

    fn read(&mut self, record: u64) -> Result<(), WorkloadError> {
        let read = self.file.read_exact_at(self.read_buffer.bytes(), record * self.record_bytes);
        read.map_err(failed("pread", &self.path))
    }

    fn refuse_stale(&self, record: u64) -> Result<(), WorkloadError> {
        let writer = self.writers[usize::try_from(record).unwrap_or(usize::MAX)];
        if RecordStream::is_stamped(self.read_buffer.as_slice(), writer) {
            return Ok(());
        }
        let what = format!("gave other bytes of record {record} than those written last");
        Err(WorkloadError::Contents { path: self.path.clone(), what })
    }
}

/// A pass in the making.
pub struct PassTask<'a> {
    file: &'a mut PassedFile,
    pass: Pass,
    /// Operations of this pass that were begun.
    begun: u64,
}

impl<'a> PassTask<'a> {
    /// At its beginning.
    pub fn new(file: &'a mut PassedFile, pass: Pass) -> Self {
        Self { file, pass, begun: 0 }
    }
}

impl Worker for PassTask<'_> {
    type Task<'a>
        = &'a mut Self
    where
        Self: 'a;

    fn start(&mut self) -> Result<&mut Self, WorkloadError> {
        Ok(self)
    }
}

impl Task for PassTask<'_> {
    fn perform(&mut self, _: i64) -> Result<Done, WorkloadError> {
        let Self { file, pass, begun } = self;
        let records = file.writers.len() as u64;
        let record = if pass.is_random() { below(&mut file.random, records) } else { *begun };
        *begun += 1;
        if !pass.is_read() {
            RecordStream::stamp(file.buffer.bytes(), file.index);
        }
        let mut done = Done::begun(pass.verb(), now_ns());
        if pass.is_read() {
            file.read(record)?;
            done.return_ns = now_ns();
            file.refuse_stale(record)?;
        } else {
            file.write(record)?;
            done.commit_ns = now_ns();
            if *begun == records || begun.is_multiple_of(file.sync_every) {
                file.file.sync_all().map_err(failed("fsync", &file.path))?;
                done.sync_calls = 1;
            }
            done.return_ns = now_ns();
        }
        file.performed.update(pass.verb());
        file.performed.update(record.to_le_bytes());
        file.index += 1;
        Ok(done)
    }
}

impl Remains for PassedFile {
    fn check(&self) -> Result<(), WorkloadError> {
        let mut wanted = self.buffer.as_slice().to_vec();
        let mut found = vec![0; wanted.len()];
        let wrong = |what: String| WorkloadError::Contents { path: self.path.clone(), what };
        let file = File::open(&self.path).map_err(failed("read back", &self.path))?;
        let bytes = file.metadata().map_err(failed("read back", &self.path))?.len();
        let due = self.writers.len() as u64 * self.record_bytes;
        if bytes != due {
            return Err(wrong(format!("is {bytes} bytes long where {due} were due")));
        }
        for (record, &writer) in (0..).zip(&self.writers) {
            let read = file.read_exact_at(&mut found, record * self.record_bytes);
            read.map_err(failed("read back", &self.path))?;
            RecordStream::stamp(&mut wanted, writer);
            if found != wanted {
                return Err(wrong(format!("record {record} does not hold what was written last")));
            }
        }
        Ok(())
    }

    fn survived(&self, _: &Cut) -> Result<Survival, WorkloadError> {
        Err(WorkloadError::refused("workload file-passes does not look for what a cut leaves"))
    }
}
