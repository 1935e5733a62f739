//! Passes over one file, each of one kind of access, timed by themselves: as many operations as the
//! file has records.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use rustix::fs::Advice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::draw::hash_of;
use super::error::{WorkloadError, step_error};
use super::files::engine::AlignedBuffer;
use super::files::remains;
use super::kind::{ClosedWorkload, Space, Workload, WorkloadKind, WorkloadRequest};
use super::ledger::{self, Ledger};
use super::threads;
use super::threads::task::{Observer, Plan};
use crate::record::words;
use crate::tables::timeline::now_ns;
use crate::workload::draw::{below, generator};
use crate::workload::files::stream::{INITIAL, RecordStream};
use crate::workload::kind::Remains;
use crate::workload::ledger::LedgerEntry;
use crate::workload::power_cut::{CutFindings, CutMoment};
use crate::workload::threads::task::Task;

pub const KIND: WorkloadKind = WorkloadKind::new::<FilePassesSettings>(FilePassesWorkload::WORDS);

impl WorkloadRequest for FilePassesSettings {
    /// The bytes of the file.
    fn space_needed(&self) -> Space {
        Space { bytes: self.file_bytes, files: 1 }
    }

    fn refuses_power_cut(&self) -> Option<&'static str> {
        Some("workload file-passes does not look for what a power cut leaves; use file-write")
    }

    fn prepare(&self, directory: &Path, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        remains::refuse_large(directory, self.file_bytes, 1)?;
        if self.record_bytes == 0 || self.record_bytes > self.file_bytes {
            return Err(WorkloadError::refusal(format!(
                "a record of {} bytes does not fit in a file of {} bytes; raise file_bytes",
                self.record_bytes, self.file_bytes
            )));
        }
        let path = directory.join("data");
        let create = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = create.map_err(step_error("create", &path))?;
        Ok(Box::new(FilePasses {
            settings: self.clone(),
            file: PassedFile::new(path, file, self, seed),
            ledger: Ledger::default(),
        }))
    }
}

/// A file that is passed over.
struct FilePasses {
    settings: FilePassesSettings,
    file: PassedFile,
    ledger: Ledger,
}

impl FilePasses {
    /// Has what was written on the device, and nothing of the file in memory.
    fn drop_pages(&self) -> Result<(), WorkloadError> {
        let PassedFile { file, path, .. } = &self.file;
        file.sync_all().map_err(step_error("fsync", path))?;
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed)
            .map_err(step_error("posix_fadvise", path))
    }
}

impl Workload for FilePasses {
    fn needs_cold_cache(&self) -> bool {
        false // of its own file it sees to that, pass by pass
    }

    fn configuration(&self) -> Result<Value, WorkloadError> {
        Ok(json!({ "passes": Pass::WORDS, "records": self.settings.records() }))
    }

    fn run(&mut self, observer: &mut dyn Observer) -> anyhow::Result<()> {
        let plan = Plan::new(0, self.settings.records(), 0);
        for pass in Pass::ALL {
            if pass.is_read() {
                self.drop_pages()?;
            }
            observer.part(pass.word());
            let mut one = [PassTask::new(&mut self.file, pass)];
            for ledger in threads::run(&mut one, plan, observer)? {
                self.ledger.tid = ledger.tid;
                self.ledger.entries.extend(ledger.entries);
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<ClosedWorkload, WorkloadError> {
        let Self { settings, file, ledger } = *self;
        Ok(ClosedWorkload {
            transactions: ledger::rows(&[ledger]),
            operation_hash: hash_of(vec![file.hash(settings.workload.word())]),
            manifest: Vec::new(),
            incomplete_reasons: Vec::new(),
            remains: Box::new(file),
        })
    }
}

words! {
    /// Its one word.
    FilePassesWorkload { Passes = "file-passes" }
}

/// Meaning and range of each stand in jojlab/model/workloads/files.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct FilePassesSettings {
    pub workload: FilePassesWorkload,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub sync_every: u64,
}

impl FilePassesSettings {
    /// Whole records that fit in the file: the operations of each pass.
    pub fn records(&self) -> u64 {
        self.file_bytes / self.record_bytes.max(1)
    }
}

words! {
    /// One pass over the file, by what a record's operation is in the transactions table.
    Pass {
        Write = "write-pass", Rewrite = "rewrite-pass", Read = "read-pass",
        RandomRead = "random-read-pass", RandomWrite = "random-write-pass",
    }
}

impl Pass {
    /// In their order: each finds what those before it left.
    pub const ALL: [Self; 5] =
        [Self::Write, Self::Rewrite, Self::Read, Self::RandomRead, Self::RandomWrite];

    /// Return whether it reads.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::RandomRead)
    }

    /// Return whether its records come in random order, some of them twice.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

/// The file, and what it holds.
pub struct PassedFile {
    pub path: PathBuf,
    pub file: File,
    record_bytes: u64,
    sync_every: u64,
    random: ChaCha8Rng,
    /// Holds what a record holds, but for its stamps.
    buffer: AlignedBuffer,
    read_buffer: AlignedBuffer,
    /// For each record the number of the operation that wrote it last.
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
        written.map_err(step_error("pwrite", &self.path))?;
        self.writers[usize::try_from(record).unwrap_or(usize::MAX)] = self.index;
        Ok(())
    }

    fn read(&mut self, record: u64) -> Result<(), WorkloadError> {
        let read = self.file.read_exact_at(self.read_buffer.bytes(), record * self.record_bytes);
        read.map_err(step_error("pread", &self.path))
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

impl Task for PassTask<'_> {
    fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
        let Self { file, pass, begun } = self;
        let records = file.writers.len() as u64;
        let record = if pass.is_random() { below(&mut file.random, records) } else { *begun };
        *begun += 1;
        if !pass.is_read() {
            RecordStream::stamp(file.buffer.bytes(), file.index);
        }
        let mut done = LedgerEntry::begin(pass.word(), now_ns());
        if pass.is_read() {
            file.read(record)?;
            done.return_ns = now_ns();
            file.refuse_stale(record)?;
        } else {
            file.write(record)?;
            done.commit_ns = now_ns();
            if *begun == records || begun.is_multiple_of(file.sync_every) {
                file.file.sync_all().map_err(step_error("fsync", &file.path))?;
                done.sync_calls = 1;
            }
            done.return_ns = now_ns();
        }
        file.performed.update(pass.word());
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
        let file = File::open(&self.path).map_err(step_error("read back", &self.path))?;
        let bytes = file.metadata().map_err(step_error("read back", &self.path))?.len();
        let due = self.writers.len() as u64 * self.record_bytes;
        if bytes != due {
            return Err(wrong(format!("is {bytes} bytes long where {due} were due")));
        }
        for (record, &writer) in (0..).zip(&self.writers) {
            let read = file.read_exact_at(&mut found, record * self.record_bytes);
            read.map_err(step_error("read back", &self.path))?;
            RecordStream::stamp(&mut wanted, writer);
            if found != wanted {
                return Err(wrong(format!("record {record} does not hold what was written last")));
            }
        }
        Ok(())
    }

    fn judge(&self, _: &CutMoment) -> Result<CutFindings, WorkloadError> {
        Err(WorkloadError::refusal("workload file-passes does not look for what a cut leaves"))
    }
}

#[cfg(test)]
pub mod tests {
    // Passes over a real file on this machine.
    use super::*;
    use crate::workload::files::watched::refusal;
    use crate::workload::threads::noted_phases::NotedPhases;

    #[test]
    fn each_pass_is_over_the_whole_file_and_syncs_at_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut workload = passes_settings().prepare(directory.path(), 5).unwrap();
        let mut notes = NotedPhases::default();
        workload.run(&mut notes).unwrap();
        assert_eq!(notes.phases, ["commit"; 5]);
        let closed = workload.close().unwrap();
        closed.remains.check().unwrap();
        for (pass, syncs) in Pass::ALL.into_iter().zip([4, 4, 0, 0, 4]) {
            let own: Vec<_> =
                closed.transactions.iter().filter(|row| row.kind == pass.word()).collect();
            assert_eq!(own.len(), 16, "{pass:?}");
            assert!(own.iter().all(|row| row.phase == "commit" && row.begin_ns < row.return_ns));
            assert_eq!(own.iter().map(|row| row.sync_calls).sum::<i64>(), syncs, "{pass:?}");
        }
        let path = directory.path().join("data");
        let mut contents = std::fs::read(&path).unwrap();
        contents[5 * 4096 + 512] ^= 1;
        std::fs::write(&path, &contents).unwrap();
        assert!(closed.remains.check().unwrap_err().to_string().contains("record 5 does not hold"));
    }

    #[test]
    fn a_read_that_gives_other_bytes_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let mut passed = PassedFile::new(path.clone(), file, &passes_settings(), 5);
        let plan = Plan::new(0, passes_settings().records(), 0);
        let mut pass = |pass| threads::run(&mut [PassTask::new(&mut passed, pass)], plan, &mut ());
        pass(Pass::Write).unwrap();
        pass(Pass::Read).unwrap();
        let mut contents = std::fs::read(&path).unwrap();
        contents[7 * 4096] ^= 1;
        std::fs::write(&path, &contents).unwrap();
        assert!(pass(Pass::Read).unwrap_err().to_string().contains("other bytes of record 7"));
    }

    #[test]
    fn the_operations_are_a_function_of_the_seed() {
        let hash = |seed| {
            let directory = tempfile::tempdir().unwrap();
            let mut workload = passes_settings().prepare(directory.path(), seed).unwrap();
            workload.run(&mut NotedPhases::default()).unwrap();
            workload.close().unwrap().operation_hash
        };
        assert_eq!(hash(5), hash(5));
        assert_ne!(hash(5), hash(6));
    }

    #[test]
    fn a_record_larger_than_the_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let large = FilePassesSettings { record_bytes: 1 << 20, ..passes_settings() };
        assert!(refusal(large.prepare(directory.path(), 1)).contains("raise file_bytes"));
    }

    /// Five passes over sixteen records.
    pub fn passes_settings() -> FilePassesSettings {
        FilePassesSettings {
            workload: FilePassesWorkload::Passes,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            sync_every: 5,
        }
    }
}
