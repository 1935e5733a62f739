//! Sectors whose contents are known: by the stamp of file, offset and version that was written, or
//! by what SQLite handed to the kernel. So the bytes of a journal that is gone, or of a page that
//! was written again, are known like those of a stamped file.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sqlite::vfs::{self, FileWrite};

/// Sectors are stamped one by one: a filesystem may place each block of a file elsewhere.
pub const SECTOR: usize = 512;
const BYTES: usize = 32;
const MAGIC: u64 = 0x6a6f_6a6c_6162_2121;

/// The stamp of one sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub file: u32,
    pub version: u32,
    pub offset: u64,
}

impl Stamp {
    fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..].copy_from_slice(&(!self.offset ^ u64::from(self.file)).to_le_bytes());
        bytes
    }

    /// The stamp that fills a sector; None where it holds anything else.
    pub fn read(sector: &[u8]) -> Option<Self> {
        let number = |from: usize| u32::from_le_bytes(sector[from..from + 4].try_into().unwrap());
        let offset = u64::from_le_bytes(sector.get(16..24)?.try_into().ok()?);
        let stamp = Stamp { file: number(8), version: number(12), offset };
        let wanted = stamp.bytes();
        sector.chunks(BYTES).all(|chunk| chunk == &wanted[..chunk.len()]).then_some(stamp)
    }
}

/// Stamps the bytes that are to be written at `offset`, a multiple of a sector.
pub fn fill(buffer: &mut [u8], file: u32, version: u32, offset: u64) {
    for (index, sector) in buffer.chunks_mut(SECTOR).enumerate() {
        let stamp = Stamp { file, version, offset: offset + (index * SECTOR) as u64 }.bytes();
        sector.chunks_mut(BYTES).for_each(|chunk| chunk.copy_from_slice(&stamp[..chunk.len()]));
    }
}

/// Every content that each sector of the files had.
#[derive(Default)]
pub struct SectorVersions {
    /// The files by path from the root of the filesystem.
    files: BTreeMap<String, Shadow>,
}

/// One name's file as it is now, and what its sectors were.
#[derive(Default)]
struct Shadow {
    bytes: Vec<u8>,
    /// Hashes by the sector's offset.
    versions: BTreeMap<u64, BTreeSet<u64>>,
}

impl SectorVersions {
    /// Takes down a write to a file.
    pub fn write(&mut self, path: &str, offset: usize, bytes: &[u8]) {
        self.files.entry(path.to_owned()).or_default().write(offset, bytes);
    }

    /// Takes over what another recorded of other files.
    pub fn join(&mut self, other: SectorVersions) {
        self.files.extend(other.files);
    }

    /// Return whether a file of this name was written.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Return whether the file's sector at an offset ever held these bytes. What was not written
    /// reads as zeros.
    pub fn had_content(&self, path: &str, offset: u64, sector: &[u8]) -> bool {
        let Some(shadow) = self.files.get(path) else { return false };
        match shadow.versions.get(&offset) {
            Some(hashes) => hashes.contains(&hash(sector)),
            None => sector.iter().all(|&byte| byte == 0),
        }
    }
}

impl Shadow {
    /// The file is so long now: it was cut, made anew under its name, or grew by a hole.
    fn resize(&mut self, length: usize) {
        let changed = self.bytes.len().min(length)..self.bytes.len().max(length);
        self.bytes.resize(length, 0);
        self.note(changed);
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.bytes.len() {
            self.resize(end);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        self.note(offset..end);
    }

    /// Keeps what the sectors of these bytes hold now; beyond the end of a file are zeros.
    fn note(&mut self, changed: std::ops::Range<usize>) {
        for offset in (changed.start / SECTOR * SECTOR..changed.end).step_by(SECTOR) {
            let mut sector = [0; SECTOR];
            if let Some(rest) = self.bytes.get(offset..) {
                let length = rest.len().min(SECTOR);
                sector[..length].copy_from_slice(&rest[..length]);
            }
            self.versions.entry(offset as u64).or_default().insert(hash(&sector));
        }
    }
}

fn hash(sector: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sector.hash(&mut hasher);
    hasher.finish()
}

/// Runs `work`, and records what SQLite writes below `directory` meanwhile.
pub fn record<T>(directory: &Path, work: impl FnOnce() -> T) -> (T, SectorVersions) {
    let recorded = Arc::new(Mutex::new(SectorVersions::default()));
    let (root, recording) = (directory.to_owned(), Arc::clone(&recorded));
    let listener = move |written: FileWrite| {
        let Ok(path) = written.path.strip_prefix(&root) else { return };
        let mut recorded = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let shadow = recorded.files.entry(format!("/{}", path.display())).or_default();
        if shadow.bytes.len() != written.length_before {
            shadow.resize(written.length_before);
        }
        shadow.write(written.offset, written.bytes);
    };
    let result = vfs::listen(listener, work);
    let recorded = std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));
    (result, recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_content_that_a_sector_had_is_known_and_no_other() {
        let mut shadow = Shadow::default();
        shadow.write(0, &[1; 700]);
        shadow.write(600, &[2; 10]);
        shadow.resize(0);
        shadow.write(0, &[3; 4]);
        let recorded = SectorVersions { files: BTreeMap::from([("/a".to_owned(), shadow)]) };
        let sector = |parts: &[(u8, usize)]| {
            let bytes = parts.iter().flat_map(|&(byte, count)| std::iter::repeat_n(byte, count));
            bytes.collect::<Vec<u8>>()
        };
        let held =
            |offset, parts: &[(u8, usize)]| recorded.had_content("/a", offset, &sector(parts));
        assert!(held(0, &[(1, 512)]) && held(0, &[(3, 4), (0, 508)]) && held(0, &[(0, 512)]));
        assert!(held(512, &[(1, 188), (0, 324)]));
        assert!(held(512, &[(1, 88), (2, 10), (1, 90), (0, 324)]));
        assert!(held(512, &[(0, 512)]) && held(1024, &[(0, 512)]));
        assert!(!held(0, &[(3, 512)]) && !held(512, &[(1, 512)]) && !held(1024, &[(1, 512)]));
        assert!(!recorded.had_content("/b", 0, &sector(&[(0, 512)])));
    }

    #[test]
    fn a_stamp_is_read_back_and_nothing_else_is_one() {
        let mut bytes = [0; 4 * SECTOR];
        fill(&mut bytes, 7, 2, 8192);
        let stamp = Stamp { file: 7, version: 2, offset: 8192 + 3 * 512 };
        assert_eq!(Stamp::read(&bytes[3 * SECTOR..]), Some(stamp));
        assert_eq!(Stamp::read(&[0; SECTOR]), None);
        bytes[SECTOR - 1] ^= 1;
        assert_eq!(Stamp::read(&bytes[..SECTOR]), None);
    }
}
