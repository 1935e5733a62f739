//! The stream of file operations: a pure function of settings and seed. Produces the record that
//! each operation is on, what it holds, and the hash by which two streams can be told apart.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use sha2::{Digest, Sha256};

use crate::record::words;
use crate::workload::draw::{Share, Shuffle, below, generator};
use crate::workload::error::WorkloadError;

words! {
    /// The order in which the records of the file come.
    Access {
        Sequential = "sequential", Random = "random", Shuffled = "shuffled", Append = "append",
        Rewrite = "rewrite",
    }
}

/// The number stamped into records that no operation wrote.
pub const INITIAL: u64 = u64::MAX;

/// Most records that an order without repeats is kept in memory for.
const MOST_SHUFFLED: u64 = 1 << 24;

/// Holds what a thread's stream is made from.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub access: Access,
    pub overlap_percent: u64,
    /// Share of reads; all or nothing where the workload does one of them alone.
    pub read_percent: u64,
    pub record_bytes: u64,
    pub file_bytes: u64,
    /// The thread's operations; none where a time decides.
    pub operations: Option<u64>,
}

impl Shape {
    /// Whole records that fit in the file.
    pub fn records(self) -> u64 {
        self.file_bytes / self.record_bytes.max(1)
    }

    fn check(self) -> Result<(), WorkloadError> {
        let Self { record_bytes, file_bytes, operations, .. } = self;
        if record_bytes == 0 || record_bytes > file_bytes {
            return Err(WorkloadError::refusal(format!(
                "a record of {record_bytes} bytes does not fit in a file of {file_bytes} bytes; \
                 raise file_bytes"
            )));
        }
        if self.access == Access::Append
            && let Some(operations) = operations
            && operations > self.records()
        {
            return Err(WorkloadError::refusal(format!(
                "{operations} records of {record_bytes} bytes appended are more than a file of \
                 {file_bytes} bytes; raise file_bytes"
            )));
        }
        let refuse = |what: &str| Err(WorkloadError::refusal(what));
        if self.overlap_percent > 0 && self.access != Access::Shuffled {
            return refuse("overlap_percent is only for access shuffled");
        }
        if self.access == Access::Shuffled && self.records() > MOST_SHUFFLED {
            return refuse("access shuffled has at most 16777216 records; raise record_bytes");
        }
        if self.access == Access::Append && self.read_percent > 0 {
            return refuse("access append is for writes alone");
        }
        Ok(())
    }
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordOperation {
    pub record: u64,
    pub is_read: bool,
}

/// The operations of one thread, drawn as they go.
#[derive(Debug)]
pub struct RecordStream {
    pub shape: Shape,
    seed: u64,
    thread: u64,
    random: ChaCha8Rng,
    reads: Share,
    /// Whole records that fit in the file.
    pub limit: u64,
    /// The record that comes next in sequential access and append.
    next: u64,
    shuffle: Option<Shuffle>,
    /// Holds what a record holds besides its stamps.
    filling: Vec<u8>,
}

impl RecordStream {
    /// Each stretch of this length carries its operation's number: the least a device writes.
    pub const SECTOR_BYTES: usize = 512;

    /// At its beginning.
    ///
    /// # Errors
    /// If the records do not fit in the file, or fields exclude one another.
    pub fn new(shape: Shape, seed: u64, thread: u64) -> Result<Self, WorkloadError> {
        shape.check()?;
        Ok(Self::begin(shape, seed, thread))
    }

    fn begin(shape: Shape, seed: u64, thread: u64) -> Self {
        let mut random = generator(seed, thread);
        let mut filling = vec![0; usize::try_from(shape.record_bytes).unwrap_or(usize::MAX)];
        random.fill_bytes(&mut filling);
        let limit = shape.records();
        let shuffle = (shape.access == Access::Shuffled)
            .then(|| Shuffle::new(u32::try_from(limit).unwrap_or(u32::MAX), shape.overlap_percent));
        let reads = Share::new(shape.read_percent);
        Self { shape, seed, thread, random, reads, limit, next: 0, shuffle, filling }
    }

    /// The next operation. Append never comes to an end here: who performs it sees to that.
    #[inline]
    pub fn draw(&mut self) -> RecordOperation {
        let record = match self.shape.access {
            Access::Sequential => {
                let record = self.next;
                self.next = if record + 1 < self.limit { record + 1 } else { 0 };
                record
            }
            Access::Append => {
                self.next += 1;
                self.next - 1
            }
            Access::Rewrite => 0,
            Access::Random => below(&mut self.random, self.limit),
            Access::Shuffled => {
                self.shuffle.as_mut().map_or(0, |shuffle| shuffle.draw(&mut self.random))
            }
        };
        RecordOperation { record, is_read: self.reads.draw(&mut self.random) }
    }

    /// The first `operations` operations again: the stream is a pure function.
    pub fn again(&self, operations: u64) -> impl Iterator<Item = RecordOperation> + use<> {
        let mut stream = Self::begin(self.shape, self.seed, self.thread);
        (0..operations).map(move |_| stream.draw())
    }

    /// SHA-256 over workload, filling and the first `operations` operations, in order.
    pub fn hash(&self, word: &str, operations: u64) -> Sha256 {
        let mut hasher = Sha256::new();
        hasher.update(word);
        hasher.update(self.shape.record_bytes.to_le_bytes());
        hasher.update(&self.filling);
        for RecordOperation { record, is_read } in self.again(operations) {
            let reads_among_writes = is_read && self.shape.read_percent < 100;
            hasher.update((record | u64::from(reads_among_writes) << 63).to_le_bytes());
        }
        hasher
    }

    /// Puts into `buffer`, of a record's length, what operation `index` writes. Only the stamps
    /// differ between operations, so that making a record takes next to no time of the guest's.
    #[inline]
    pub fn stamp(buffer: &mut [u8], index: u64) {
        let stamp = index.to_le_bytes();
        // Whole sectors apart from the rest: a copy of known length is one store, any other a call.
        let mut sectors = buffer.chunks_exact_mut(Self::SECTOR_BYTES);
        for sector in &mut sectors {
            sector[..stamp.len()].copy_from_slice(&stamp);
        }
        let rest = sectors.into_remainder();
        let length = rest.len().min(stamp.len());
        rest[..length].copy_from_slice(&stamp[..length]);
    }

    /// Return whether every sector of a record carries that number.
    #[inline]
    pub fn is_stamped(buffer: &[u8], index: u64) -> bool {
        let stamp = index.to_le_bytes();
        let sectors = buffer.chunks_exact(Self::SECTOR_BYTES);
        let rest = sectors.remainder();
        let length = rest.len().min(stamp.len());
        rest[..length] == stamp[..length]
            && sectors.into_iter().all(|sector| sector[..stamp.len()] == stamp)
    }

    /// Puts the whole of what operation `index` writes into `buffer`, of a record's length.
    pub fn fill(&self, buffer: &mut [u8], index: u64) {
        buffer.copy_from_slice(&self.filling);
        Self::stamp(buffer, index);
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::workload::draw::hash_of;

    /// The shape of nine random writes to a file of sixteen records.
    pub fn shape() -> Shape {
        Shape {
            access: Access::Random,
            overlap_percent: 0,
            read_percent: 0,
            record_bytes: 4096,
            file_bytes: 16 * 4096,
            operations: Some(9),
        }
    }

    fn hash(word: &str, seed: u64, thread: u64) -> String {
        let stream = RecordStream::new(shape(), seed, thread).unwrap();
        hash_of(vec![stream.hash(word, 9)])
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // Golden: another value means that every cached result and published seed is void.
        assert_eq!(
            hash("file-write", 42, 0),
            "08c2820075fa45e4efd304c8af9c58c7402a9e5e12fbe2e983b35999d10ddd1a"
        );
        let others = [("file-write", 43, 0), ("file-read", 42, 0), ("file-write", 42, 1)];
        let hashes: BTreeSet<String> =
            others.into_iter().map(|(word, seed, thread)| hash(word, seed, thread)).collect();
        assert_eq!(hashes.len(), 3);
        assert!(!hashes.contains(&hash("file-write", 42, 0)));
    }

    #[test]
    fn every_sector_of_a_record_tells_who_wrote_it() {
        let stream = RecordStream::new(Shape { record_bytes: 1030, ..shape() }, 1, 0).unwrap();
        let mut record = vec![0; 1030];
        stream.fill(&mut record, 7);
        assert_eq!(record[..8], 7_u64.to_le_bytes());
        assert_eq!(record[512..520], 7_u64.to_le_bytes());
        assert_eq!(record[1024..], 7_u64.to_le_bytes()[..6]);
        let mut stamped = vec![0; 1030];
        stream.fill(&mut stamped, 6);
        RecordStream::stamp(&mut stamped, 7);
        assert_eq!(stamped, record);
    }

    #[test]
    fn contradictory_shapes_of_records_are_refused() {
        let refusal = |shape| RecordStream::new(shape, 1, 0).unwrap_err().to_string();
        assert!(refusal(Shape { record_bytes: 70_000, ..shape() }).contains("does not fit"));
        assert!(refusal(Shape { record_bytes: 0, ..shape() }).contains("does not fit"));
        let append = Shape { access: Access::Append, operations: Some(17), ..shape() };
        assert!(refusal(append).contains("17 records of 4096 bytes"));
        let append = Shape { access: Access::Append, read_percent: 1, ..shape() };
        assert!(refusal(append).contains("writes alone"));
        assert!(refusal(Shape { overlap_percent: 5, ..shape() }).contains("for access shuffled"));
    }

    proptest! {
        #[test]
        fn every_operation_is_on_a_record_of_the_file(
            access in 0..5_usize, record_bytes in 1..3000_u64, records in 1..40_u64,
            operations in 0..40_u64, read_percent in 0..101_u64, seed: u64, thread in 0..100_u64,
        ) {
            let access = [
                Access::Sequential, Access::Random, Access::Rewrite, Access::Append,
                Access::Shuffled,
            ][access];
            let append = access == Access::Append;
            let operations = if append { operations % records } else { operations };
            let shape = Shape {
                access,
                overlap_percent: 0,
                read_percent: if append { 0 } else { read_percent },
                record_bytes,
                file_bytes: records * record_bytes,
                operations: Some(operations),
            };
            let mut stream = RecordStream::new(shape, seed, thread).unwrap();
            let drawn: Vec<RecordOperation> = (0..operations).map(|_| stream.draw()).collect();
            prop_assert!(drawn.iter().all(|operation| operation.record < records));
            let again: Vec<RecordOperation> = stream.again(operations).collect();
            prop_assert_eq!(drawn, again);
        }
    }
}
