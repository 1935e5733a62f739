//! The writers of each file of a live trace: they own the pages that kernel threads write, and are
//! the rows of the table writers.

use std::collections::{BTreeMap, BTreeSet};

use crate::byte_text;
use crate::commits::recent_map::RecentMap;
use crate::commits::witness::WriterCount;
use crate::tables::rows::Writer;
use crate::tracer::{FileKey, Files};

/// Files whose writers are kept: so many recent ones, and as many others; and counts that wait for
/// their file to have I/O.
const FILES_LIMIT: usize = 16_384;
const WAITING_LIMIT: usize = 16_384;

/// The processes that count for a file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// All that wrote it are watched.
    Watched,
    /// None of them is.
    Other,
    /// Nobody was seen to write it, or some of them are watched and others not.
    Unknown,
}

/// The writers of files.
#[derive(Default)]
pub struct FileWriters {
    by_file: RecentMap<FileKey, BTreeSet<u32>, FILES_LIMIT>,
    /// Counts that were not written.
    waiting: BTreeMap<(FileKey, u32), WriterCount>,
}

impl FileWriters {
    /// A process wrote to a file.
    pub fn see(&mut self, count: WriterCount) {
        let mut writers = self.by_file.remove(&count.file).unwrap_or_default();
        writers.insert(count.pid);
        self.by_file.insert(count.file, writers);
        let known = self.waiting.entry((count.file, count.pid)).or_insert(WriterCount {
            write_calls: 0,
            write_bytes: 0,
            dirtied: 0,
            ..count
        });
        known.write_calls += count.write_calls;
        known.write_bytes += count.write_bytes;
        known.dirtied += count.dirtied;
    }

    /// Return the processes that a file's pages count for, by those that wrote it.
    pub fn ownership(&self, file: FileKey, is_watched: impl Fn(u32) -> bool) -> Ownership {
        let Some(writers) = self.by_file.peek(&file) else { return Ownership::Unknown };
        match writers.iter().filter(|&&pid| is_watched(pid)).count() {
            0 => Ownership::Other,
            watched if watched == writers.len() => Ownership::Watched,
            _ => Ownership::Unknown,
        }
    }

    /// The rows of files that are in the tables by now; of all at the end.
    pub fn take_rows(
        &mut self,
        files: &Files,
        is_watched: impl Fn(u32) -> bool,
        is_end: bool,
    ) -> Vec<Writer> {
        let is_all = is_end || self.waiting.len() > WAITING_LIMIT;
        let (ready, waiting): (BTreeMap<_, _>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|((file, _), _)| is_all || files.id(*file).is_some());
        self.waiting = waiting;
        let row = |((file, pid), count): ((FileKey, u32), WriterCount)| Writer {
            file_id: files.id(file),
            pid: pid.into(),
            process: byte_text::comm(&count.name),
            is_watched: is_watched(pid),
            write_calls: count.write_calls as i64,
            write_bytes: count.write_bytes as i64,
            dirtied: count.dirtied as i64,
        };
        ready.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey { filesystem: 9, inode: 7, generation: 8, subvolume: 0 };

    fn count(pid: u32, write_bytes: u64) -> WriterCount {
        let mut name = [0; 16];
        name[..3].copy_from_slice(b"app");
        WriterCount { file: FILE, pid, name, write_calls: 1, write_bytes, dirtied: 2 }
    }

    #[test]
    fn a_file_is_whose_all_its_writers_are() {
        let mut writers = FileWriters::default();
        let ownership = |writers: &FileWriters| writers.ownership(FILE, |pid| pid < 10);
        assert_eq!(ownership(&writers), Ownership::Unknown);
        writers.see(count(1, 100));
        writers.see(count(2, 100));
        assert_eq!(ownership(&writers), Ownership::Watched);
        writers.see(count(10, 100));
        assert_eq!(ownership(&writers), Ownership::Unknown);
        let mut writers = FileWriters::default();
        writers.see(count(10, 100));
        assert_eq!(ownership(&writers), Ownership::Other);
    }

    #[test]
    fn counts_of_a_process_are_added_up_and_wait_for_their_file() {
        let mut writers = FileWriters::default();
        for count in [count(1, 100), count(1, 50), count(10, 7)] {
            writers.see(count);
        }
        let is_watched = |pid| pid < 10;
        assert!(writers.take_rows(&Files::default(), is_watched, false).is_empty());
        let rows = writers.take_rows(&Files::default(), is_watched, true);
        let sums: Vec<_> = rows
            .iter()
            .map(|row| (row.pid, row.write_bytes, row.dirtied, row.is_watched))
            .collect();
        assert_eq!(sums, [(1, 150, 4, true), (10, 7, 2, false)]);
        assert!(rows.iter().all(|row| row.file_id.is_none() && row.process == "app"));
        assert!(writers.take_rows(&Files::default(), is_watched, true).is_empty());
    }
}
