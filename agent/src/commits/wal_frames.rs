//! Which databases have a WAL, and where its frames lie (sqlite.org/fileformat2.html, section 4):
//! known once its header or a page was written.

use std::collections::{BTreeMap, BTreeSet};

pub const WAL_HEADER_BYTES: u64 = 32;
pub const FRAME_HEADER_BYTES: u64 = 24;

/// By the numbers of databases that have a WAL.
#[derive(Debug, Default)]
pub struct WalFrames {
    in_wal: BTreeSet<usize>,
    page_bytes: BTreeMap<usize, u64>,
}

impl WalFrames {
    /// The database has a WAL.
    pub fn enter(&mut self, database: usize) {
        self.in_wal.insert(database);
    }

    /// It has none any more.
    pub fn leave(&mut self, database: usize) {
        self.in_wal.remove(&database);
        self.page_bytes.remove(&database);
    }

    /// The header of a WAL was written, whose first bytes these are.
    pub fn begin(&mut self, database: usize, header: &[u8]) {
        self.enter(database);
        if let Some(page) = header.get(8..12) {
            let page = u32::from_be_bytes(page.try_into().expect("4 bytes"));
            self.page_bytes.insert(database, page.into());
        }
    }

    /// A page was written to it.
    pub fn page(&mut self, database: usize, length_bytes: u64) {
        self.enter(database);
        self.page_bytes.entry(database).or_insert(length_bytes);
    }

    /// Whether it has a WAL, as far as was seen.
    pub fn has_wal(&self, database: usize) -> bool {
        self.in_wal.contains(&database)
    }

    /// The number of the frame that begins there, from 1.
    pub fn number(&self, database: usize, offset_bytes: u64) -> i64 {
        let frame =
            self.page_bytes.get(&database).map_or(u64::MAX, |page| page + FRAME_HEADER_BYTES);
        (offset_bytes.saturating_sub(WAL_HEADER_BYTES) / frame) as i64 + 1
    }

    /// Forgets those of all other databases.
    pub fn keep(&mut self, databases: &BTreeSet<usize>) {
        self.in_wal.retain(|number| databases.contains(number));
        self.page_bytes.retain(|number, _| databases.contains(number));
    }
}
