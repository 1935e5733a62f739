//! The stream of file operations: a pure function of settings and seed. Produces the record that
//! each operation is on, what it holds, and the hash by which two streams can be told apart.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

use crate::case::{Access, FileReadSettings, FileWriteSettings};
use crate::workload::WorkloadError;
use crate::workload::operations::below;

/// The number stamped into records that no operation wrote.
pub const INITIAL: u64 = u64::MAX;
/// Each stretch of this length carries its operation's number: the least a device writes.
const STAMP_EVERY_BYTES: usize = 512;

/// What a stream is made from.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub access: Access,
    pub record_bytes: u64,
    pub file_bytes: u64,
    pub operations: u64,
}

impl From<&FileWriteSettings> for Shape {
    fn from(settings: &FileWriteSettings) -> Self {
        Self {
            access: settings.access,
            record_bytes: settings.record_bytes,
            file_bytes: settings.file_bytes,
            operations: settings.warmup_transactions + settings.transactions,
        }
    }
}

impl From<&FileReadSettings> for Shape {
    fn from(settings: &FileReadSettings) -> Self {
        Self {
            access: settings.access,
            record_bytes: settings.record_bytes,
            file_bytes: settings.file_bytes,
            operations: settings.warmup_transactions + settings.transactions,
        }
    }
}

impl Shape {
    /// Whole records that fit in the file.
    pub fn records(self) -> u64 {
        self.file_bytes / self.record_bytes.max(1)
    }

    fn check(self) -> Result<(), WorkloadError> {
        let Self { record_bytes, file_bytes, operations, .. } = self;
        if record_bytes == 0 || record_bytes > file_bytes {
            return Err(WorkloadError::Refused(format!(
                "a record of {record_bytes} bytes does not fit in a file of {file_bytes} bytes; \
                 raise file_bytes"
            )));
        }
        if self.access == Access::Append && operations > self.records() {
            return Err(WorkloadError::Refused(format!(
                "{operations} records of {record_bytes} bytes appended are more than a file of \
                 {file_bytes} bytes; raise file_bytes"
            )));
        }
        Ok(())
    }
}

/// The operations of one case.
#[derive(Debug)]
pub struct Stream {
    /// The record that each operation is on, warm-up first.
    pub records: Vec<u64>,
    /// What a record holds besides its stamps.
    filling: Vec<u8>,
    /// SHA-256 over workload, filling and records in order, in hexadecimal.
    pub hash: String,
}

impl Stream {
    /// Draws the whole stream. `word` is the workload's, for the hash.
    ///
    /// # Errors
    /// If the records do not fit in the file.
    pub fn new(word: &str, shape: Shape, seed: u64) -> Result<Self, WorkloadError> {
        shape.check()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut filling = vec![0; usize::try_from(shape.record_bytes).unwrap_or(usize::MAX)];
        random.fill_bytes(&mut filling);
        let limit = shape.records();
        let records: Vec<u64> = (0..shape.operations)
            .map(|index| match shape.access {
                Access::Sequential => index % limit,
                Access::Random => below(&mut random, limit),
                Access::Append => index,
                Access::Rewrite => 0,
            })
            .collect();
        let mut hasher = Sha256::new();
        hasher.update(word);
        hasher.update(shape.record_bytes.to_le_bytes());
        hasher.update(&filling);
        for record in &records {
            hasher.update(record.to_le_bytes());
        }
        let hash = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { records, filling, hash })
    }

    /// Puts into `buffer`, of a record's length, what operation `index` writes. Only the stamps
    /// differ between operations, so that making a record takes next to no time of the guest's.
    pub fn stamp(buffer: &mut [u8], index: u64) {
        for sector in buffer.chunks_mut(STAMP_EVERY_BYTES) {
            let length = sector.len().min(size_of::<u64>());
            sector[..length].copy_from_slice(&index.to_le_bytes()[..length]);
        }
    }

    /// Puts the whole of what operation `index` writes into `buffer`, of a record's length.
    pub fn fill(&self, buffer: &mut [u8], index: u64) {
        buffer.copy_from_slice(&self.filling);
        Self::stamp(buffer, index);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::case::file::tests::write_settings;

    fn shape() -> Shape {
        Shape::from(&write_settings())
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let stream = Stream::new("file-write", shape(), 42).unwrap();
        // Golden: another value means that every cached result and published seed is void.
        assert_eq!(stream.hash, "08c2820075fa45e4efd304c8af9c58c7402a9e5e12fbe2e983b35999d10ddd1a");
        assert_ne!(stream.hash, Stream::new("file-write", shape(), 43).unwrap().hash);
        assert_ne!(stream.hash, Stream::new("file-read", shape(), 42).unwrap().hash);
    }

    #[test]
    fn every_sector_of_a_record_tells_who_wrote_it() {
        let stream = Stream::new("file-write", Shape { record_bytes: 1030, ..shape() }, 1).unwrap();
        let mut record = vec![0; 1030];
        stream.fill(&mut record, 7);
        assert_eq!(record[..8], 7_u64.to_le_bytes());
        assert_eq!(record[512..520], 7_u64.to_le_bytes());
        assert_eq!(record[1024..], 7_u64.to_le_bytes()[..6]);
        let mut stamped = vec![0; 1030];
        stream.fill(&mut stamped, 6);
        Stream::stamp(&mut stamped, 7);
        assert_eq!(stamped, record);
    }

    #[test]
    fn records_that_do_not_fit_are_refused() {
        let refusal = |shape| Stream::new("file-write", shape, 1).unwrap_err().to_string();
        assert!(refusal(Shape { record_bytes: 70_000, ..shape() }).contains("does not fit"));
        assert!(refusal(Shape { record_bytes: 0, ..shape() }).contains("does not fit"));
        let append = Shape { access: Access::Append, operations: 17, ..shape() };
        assert!(refusal(append).contains("17 records of 4096 bytes"));
    }

    proptest! {
        #[test]
        fn every_operation_is_on_a_record_of_the_file(
            access in 0..4_usize, record_bytes in 1..3000_u64, records in 1..40_u64,
            operations in 0..40_u64, seed: u64,
        ) {
            let accesses = [Access::Sequential, Access::Random, Access::Rewrite, Access::Append];
            let access = accesses[access];
            let append = access == Access::Append;
            let operations = if append { operations % records } else { operations };
            let file_bytes = records * record_bytes;
            let shape = Shape { access, record_bytes, file_bytes, operations };
            let stream = Stream::new("file-write", shape, seed).unwrap();
            prop_assert_eq!(stream.records.len() as u64, operations);
            prop_assert!(stream.records.iter().all(|&record| record < records));
        }
    }
}
