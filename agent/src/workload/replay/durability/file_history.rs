//! The history of one file: what calls made of it, in the order of their ends; and whether a file
//! is what it must be at a moment. Pages of it that no call changed are not looked at. The bytes
//! that calls wrote lie in one long stream.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{CallTime, ChangeTime, ExpectedMoment};

/// The period of what files are filled with before the first call.
const FILL_BYTES: usize = 1 << 20;

/// The source of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBytes {
    /// The stream from a place on, which is at the given offset of the file.
    Stream {
        place: usize,
        offset_bytes: u64,
    },
    /// The beginning of the stream, over and over.
    Fill,
    Zeros,
    /// Any: nobody kept what was written.
    Unknown,
}

impl WrittenBytes {
    /// Return whether a file may hold that at an offset.
    pub fn are(self, found: &[u8], at_bytes: u64, stream: &[u8]) -> bool {
        match self {
            Self::Unknown => true,
            Self::Zeros => found.iter().all(|byte| *byte == 0),
            Self::Stream { place, offset_bytes } => {
                let begin = place + (at_bytes - offset_bytes) as usize;
                stream.get(begin..begin + found.len()) == Some(found)
            }
            Self::Fill => {
                let begin = (at_bytes % FILL_BYTES as u64) as usize;
                let first = found.len().min(FILL_BYTES - begin);
                stream.get(begin..begin + first) == Some(&found[..first])
                    && stream.get(..found.len() - first) == Some(&found[first..])
            }
        }
    }
}

const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy)]
enum ContentChange {
    Write {
        offset_bytes: u64,
        length_bytes: u64,
        bytes: WrittenBytes,
    },
    /// Something was stored in a mapping, which makes no file longer.
    Store {
        offset_bytes: u64,
        length_bytes: u64,
    },
    Size(u64),
}

/// One file.
#[derive(Debug, Default)]
pub struct FileHistory {
    first_bytes: u64,
    size_bytes: u64,
    most_bytes: u64,
    changes: Vec<(ChangeTime, ContentChange)>,
    /// The number of those that are promised, all but those that synced themselves.
    synced: usize,
    /// The changes of each page, in order.
    pages: BTreeMap<u64, Vec<usize>>,
    /// Bytes that calls wrote whose contents nobody kept.
    pub unknown_bytes: u64,
}

/// The changes that had been made to a file at a moment, as numbers.
#[derive(Debug, Clone, Copy)]
pub struct FileMark {
    changes: usize,
    size_bytes: u64,
}

/// The verdict on a file's contents; the later, the worse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileVerdict {
    Kept,
    /// It is as it was before: what of it.
    Old(String),
    /// As no call left it.
    Strange(String),
}

/// The contents that one part of a page may hold.
struct Candidates {
    fresh: Vec<WrittenBytes>,
    stale: Vec<WrittenBytes>,
}

impl FileHistory {
    /// A file that is there before the first call.
    pub fn with_content(bytes: u64) -> Self {
        Self { first_bytes: bytes, size_bytes: bytes, most_bytes: bytes, ..Self::default() }
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes were written; `is_synced`: by a call that waits until they are durable.
    pub fn write(
        &mut self,
        at: CallTime,
        offset_bytes: u64,
        length_bytes: u64,
        bytes: WrittenBytes,
        is_synced: bool,
    ) {
        if length_bytes == 0 {
            return;
        }
        if bytes == WrittenBytes::Unknown {
            self.unknown_bytes += length_bytes;
        }
        let end_bytes = offset_bytes + length_bytes;
        let pages = offset_bytes / PAGE_BYTES..=(end_bytes - 1) / PAGE_BYTES;
        let time = if is_synced { ChangeTime::with_sync(at) } else { ChangeTime::open(at) };
        self.change(time, pages, ContentChange::Write { offset_bytes, length_bytes, bytes });
        self.size_bytes = self.size_bytes.max(end_bytes);
        self.most_bytes = self.most_bytes.max(end_bytes);
    }

    /// Something was stored in a mapping. Behind the end of the file it is in no file, but in the
    /// rest of its last page it may be seen once the file grows (mmap(2)).
    pub fn store(&mut self, at: CallTime, offset_bytes: u64, length_bytes: u64) {
        let in_file = length_bytes.min(self.size_bytes.saturating_sub(offset_bytes));
        let mapped_bytes = self.size_bytes.next_multiple_of(PAGE_BYTES);
        let length_bytes = length_bytes.min(mapped_bytes.saturating_sub(offset_bytes));
        if length_bytes == 0 {
            return;
        }
        self.unknown_bytes += in_file;
        let pages = offset_bytes / PAGE_BYTES..=(offset_bytes + length_bytes - 1) / PAGE_BYTES;
        let change = ContentChange::Store { offset_bytes, length_bytes };
        self.change(ChangeTime::open(at), pages, change);
    }

    /// The size was set.
    pub fn resize(&mut self, at: CallTime, size_bytes: u64) {
        let pages = size_bytes / PAGE_BYTES..=self.size_bytes.div_ceil(PAGE_BYTES);
        self.change(ChangeTime::open(at), pages, ContentChange::Size(size_bytes));
        self.size_bytes = size_bytes;
        self.most_bytes = self.most_bytes.max(size_bytes);
    }

    pub fn mark(&self) -> FileMark {
        FileMark { changes: self.changes.len(), size_bytes: self.size_bytes }
    }

    /// Take back what was done since a mark: it never reached the file.
    pub fn go_back_to(&mut self, mark: FileMark) {
        self.changes.truncate(mark.changes);
        self.synced = self.synced.min(mark.changes);
        self.pages.values_mut().for_each(|page| page.retain(|number| *number < mark.changes));
        self.size_bytes = mark.size_bytes;
    }

    fn change(
        &mut self,
        time: ChangeTime,
        pages: std::ops::RangeInclusive<u64>,
        change: ContentChange,
    ) {
        for page in pages {
            self.pages.entry(page).or_default().push(self.changes.len());
        }
        self.changes.push((time, change));
    }

    /// A call synced the file.
    pub fn sync(&mut self, by: CallTime) {
        let open = &mut self.changes[self.synced..];
        let done = open.iter().take_while(|(time, _)| time.end_ns <= by.begin_ns).count();
        open[..done].iter_mut().for_each(|(time, _)| time.sync(by));
        self.synced += done;
    }

    /// From when on each change is promised.
    pub fn promise_times_ns(&self) -> impl Iterator<Item = i64> {
        self.changes.iter().map(|(time, _)| time.durable_ns)
    }

    /// The smallest and the largest size that it may have.
    fn sizes(&self, expected: ExpectedMoment) -> (u64, u64) {
        let (mut least, mut most) = (self.first_bytes, self.first_bytes);
        for (time, change) in &self.changes {
            if !expected.has_begun(*time) {
                continue;
            }
            match (change, expected.is_settled(*time)) {
                (ContentChange::Size(bytes), true) => (least, most) = (*bytes, *bytes),
                (ContentChange::Size(bytes), false) => {
                    (least, most) = (least.min(*bytes), most.max(*bytes));
                }
                (ContentChange::Write { offset_bytes, length_bytes, .. }, is_settled) => {
                    most = most.max(offset_bytes + length_bytes);
                    if is_settled {
                        least = least.max(offset_bytes + length_bytes);
                    }
                }
                (ContentChange::Store { .. }, _) => {}
            }
        }
        (least, most)
    }

    /// Looks at the file of that path.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn look(
        &self,
        path: &Path,
        stream: &[u8],
        expected: ExpectedMoment,
    ) -> io::Result<FileVerdict> {
        let found_bytes = std::fs::metadata(path)?.len();
        let (least, most) = self.sizes(expected);
        if found_bytes < least || found_bytes > most {
            let what = format!("is {found_bytes} bytes long where {least} to {most} were due");
            let was_so = found_bytes <= self.most_bytes;
            return Ok(if was_so { FileVerdict::Old(what) } else { FileVerdict::Strange(what) });
        }
        if self.pages.is_empty() {
            return Ok(FileVerdict::Kept);
        }
        let file = File::open(path)?;
        let mut worst = FileVerdict::Kept;
        let mut page = [0; PAGE_BYTES as usize];
        for (number, changes) in self.pages.range(..found_bytes.div_ceil(PAGE_BYTES)) {
            let begin = number * PAGE_BYTES;
            let length = (found_bytes - begin).min(PAGE_BYTES);
            let page = &mut page[..length as usize];
            file.read_exact_at(page, begin)?;
            let found = self.look_at(page, begin, changes, least, stream, expected);
            worst = worst.max(found);
        }
        Ok(worst)
    }

    fn look_at(
        &self,
        page: &[u8],
        begin: u64,
        changes: &[usize],
        least: u64,
        stream: &[u8],
        expected: ExpectedMoment,
    ) -> FileVerdict {
        let end = begin + page.len() as u64;
        let mut cuts: Vec<u64> = (begin..end).step_by(SECTOR_BYTES as usize).collect();
        cuts.extend([self.first_bytes, least, end]);
        for &number in changes {
            match self.changes[number].1 {
                ContentChange::Write { offset_bytes, length_bytes, .. }
                | ContentChange::Store { offset_bytes, length_bytes } => {
                    cuts.extend([offset_bytes, offset_bytes + length_bytes]);
                }
                ContentChange::Size(bytes) => cuts.push(bytes),
            }
        }
        cuts.retain(|cut| (begin..=end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        let mut worst = FileVerdict::Kept;
        for pair in cuts.windows(2) {
            let found = &page[(pair[0] - begin) as usize..(pair[1] - begin) as usize];
            let Candidates { fresh, stale } = self.candidates(pair[0], changes, expected);
            let holds =
                |all: &[WrittenBytes]| all.iter().any(|bytes| bytes.are(found, pair[0], stream));
            let is_zero = WrittenBytes::Zeros.are(found, pair[0], stream);
            // What a file grew by may be there as zeros until it is synced.
            if holds(&fresh) || (pair[0] >= least && is_zero) {
                continue;
            }
            let of = format!("{} bytes from {}", found.len(), pair[0]);
            worst = worst.max(if holds(&stale) || is_zero {
                FileVerdict::Old(format!("has {of} on as they were before"))
            } else {
                FileVerdict::Strange(format!("holds in {of} on what nobody wrote there"))
            });
        }
        worst
    }

    /// Return the candidates for a place that changes cover whole or not at all.
    fn candidates(&self, at_bytes: u64, changes: &[usize], expected: ExpectedMoment) -> Candidates {
        let first = match at_bytes < self.first_bytes {
            true => WrittenBytes::Fill,
            false => WrittenBytes::Zeros,
        };
        let mut found = Candidates { fresh: vec![first], stale: Vec::new() };
        for &number in changes {
            let (time, change) = self.changes[number];
            let bytes = match change {
                ContentChange::Write { offset_bytes, length_bytes, bytes }
                    if (offset_bytes..offset_bytes + length_bytes).contains(&at_bytes) =>
                {
                    bytes
                }
                ContentChange::Store { offset_bytes, length_bytes }
                    if (offset_bytes..offset_bytes + length_bytes).contains(&at_bytes) =>
                {
                    WrittenBytes::Unknown
                }
                ContentChange::Size(bytes) if at_bytes >= bytes => WrittenBytes::Zeros,
                _ => continue,
            };
            if expected.has_begun(time) {
                if expected.is_settled(time) {
                    found.stale.append(&mut found.fresh);
                }
                found.fresh.push(bytes);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: usize = 40_000;

    fn stream() -> Vec<u8> {
        // No two places are alike.
        (0..STREAM as u32).flat_map(|number| (number * 2 + 1).to_le_bytes()).collect()
    }

    fn at(begin_ns: i64) -> CallTime {
        CallTime { begin_ns, end_ns: begin_ns + 1 }
    }

    fn bytes(place: usize, offset_bytes: u64) -> WrittenBytes {
        WrittenBytes::Stream { place, offset_bytes }
    }

    fn look(file: &FileHistory, contents: &[u8], at_ns: i64) -> FileVerdict {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, contents).unwrap();
        file.look(&path, &stream(), ExpectedMoment::AfterCut { at_ns }).unwrap()
    }

    /// 6000 bytes at 10, synced at 20; 1000 of them again at 30, and as many more, synced at 40.
    fn history() -> FileHistory {
        let mut file = FileHistory::default();
        file.write(at(10), 0, 6000, bytes(0, 0), false);
        file.sync(at(20));
        file.write(at(30), 5500, 1500, bytes(9000, 5500), false);
        file.sync(at(40));
        file
    }

    #[test]
    fn synced_bytes_must_be_there_and_others_may_be_in_any_part() {
        let (stream, file) = (stream(), history());
        let old = stream[..6000].to_vec();
        let new = [&stream[..5500], &stream[9000..10500]].concat();
        assert_eq!(look(&file, &[], 20), FileVerdict::Kept);
        assert_eq!(look(&file, &old, 20), FileVerdict::Kept);
        assert!(matches!(look(&file, &[], 21), FileVerdict::Old(_)));
        assert_eq!(look(&file, &old, 40), FileVerdict::Kept);
        assert_eq!(look(&file, &new, 40), FileVerdict::Kept);
        let half = [&new[..5632], &old[5632..]].concat();
        assert_eq!(look(&file, &half, 40), FileVerdict::Kept);
        let zeros = [&old[..], &[0; 1000]].concat();
        assert_eq!(look(&file, &zeros, 40), FileVerdict::Kept);
        assert_eq!(look(&file, &new, 41), FileVerdict::Kept);
        for lost in [&old, &half, &zeros] {
            assert!(matches!(look(&file, lost, 41), FileVerdict::Old(_)));
        }
        // Not begun, or by nobody.
        assert!(matches!(look(&file, &new, 29), FileVerdict::Old(_)));
        let mut strange = new;
        strange[700] ^= 1;
        assert!(matches!(look(&file, &strange, 41), FileVerdict::Strange(_)));
    }

    #[test]
    fn a_size_that_was_set_is_promised_by_a_sync_and_what_is_behind_it_is_zero_afterwards() {
        let (stream, mut file) = (stream(), FileHistory::with_content(3000));
        file.resize(at(10), 100);
        file.sync(at(20));
        file.resize(at(30), 2000);
        file.sync(at(40));
        let (whole, cut) = (&stream[..3000], &stream[..100]);
        let grown = [cut, &[0; 1900]].concat();
        assert_eq!(look(&file, whole, 20), FileVerdict::Kept);
        assert!(matches!(look(&file, whole, 25), FileVerdict::Old(_)));
        assert_eq!(look(&file, cut, 25), FileVerdict::Kept);
        assert_eq!(look(&file, &grown, 30), FileVerdict::Kept);
        assert!(matches!(look(&file, cut, 41), FileVerdict::Old(_)));
        assert!(matches!(look(&file, &whole[..2000], 41), FileVerdict::Old(_)));
        assert_eq!(look(&file, &grown, 41), FileVerdict::Kept);
    }

    #[test]
    fn a_write_that_syncs_promises_itself_alone() {
        let (stream, mut file) = (stream(), FileHistory::with_content(4096));
        file.write(at(10), 0, 512, bytes(5000, 0), false);
        file.write(at(20), 1024, 512, bytes(7000, 1024), true);
        let with = |first: bool, second: bool| {
            let mut all = stream[..4096].to_vec();
            if first {
                all[..512].copy_from_slice(&stream[5000..5512]);
            }
            if second {
                all[1024..1536].copy_from_slice(&stream[7000..7512]);
            }
            all
        };
        for first in [false, true] {
            assert_eq!(look(&file, &with(first, true), 21), FileVerdict::Kept);
            assert_eq!(look(&file, &with(first, false), 20), FileVerdict::Kept);
            assert!(matches!(look(&file, &with(first, false), 21), FileVerdict::Old(_)));
        }
    }
}
