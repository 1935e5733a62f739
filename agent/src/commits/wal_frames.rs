//! Where the frames of a WAL lie (sqlite.org/fileformat2.html, section 4): known once its header or
//! a page was written.

use std::collections::{BTreeMap, BTreeSet};

pub const WAL_HEADER_BYTES: u64 = 32;
pub const FRAME_HEADER_BYTES: u64 = 24;

/// Page sizes, by the numbers of databases.
#[derive(Debug, Default)]
pub struct WalFrames(BTreeMap<usize, u64>);

impl WalFrames {
    /// The header of a WAL was written, whose first bytes these are.
    pub fn begin(&mut self, database: usize, header: &[u8]) {
        if let Some(page) = header.get(8..12) {
            let page = u32::from_be_bytes(page.try_into().expect("4 bytes"));
            self.0.insert(database, page.into());
        }
    }

    /// A page was written to it.
    pub fn page(&mut self, database: usize, length_bytes: u64) {
        self.0.entry(database).or_insert(length_bytes);
    }

    /// A WAL of this database was written.
    pub fn is_known(&self, database: usize) -> bool {
        self.0.contains_key(&database)
    }

    /// The number of the frame that begins there, from 1.
    pub fn number(&self, database: usize, offset_bytes: u64) -> i64 {
        let frame = self.0.get(&database).map_or(u64::MAX, |page| page + FRAME_HEADER_BYTES);
        (offset_bytes.saturating_sub(WAL_HEADER_BYTES) / frame) as i64 + 1
    }

    /// Forgets those of all other databases.
    pub fn keep(&mut self, databases: &BTreeSet<usize>) {
        self.0.retain(|number, _| databases.contains(number));
    }
}
