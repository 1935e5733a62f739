//! Contents of write calls, where the user asks for them: reads them from the memory of the
//! thread; gives their hash, and keeps each once.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::memory::ProgramMemory;
use crate::tables::recording::Content;
use crate::tables::write::Segments;
use crate::tables::write::WriteError;

/// What is recorded of contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Data {
    None,
    Hash,
    Keep,
}

/// Bytes of a hash that are kept: no two contents of a recording share them by chance.
const HASH_BYTES: usize = 16;
const PIECE_BYTES: u64 = 1 << 20;

/// Contents that wait to be written.
#[derive(Debug, Default)]
pub struct PendingContents {
    bytes: Vec<u8>,
    rows: Vec<Content>,
}

impl PendingContents {
    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the bytes to contents.bin, and the rows that say where they are.
    pub fn append_to(self, directory: &Path, segments: &Segments) -> Result<(), WriteError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let path = directory.join("contents.bin");
        let write = || {
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.write_all(&self.bytes)?;
            file.sync_data()
        };
        write().map_err(|source| WriteError::File { path: path.clone(), source })?;
        segments.append(&self.rows)
    }
}

/// The contents so far.
#[derive(Debug)]
pub struct Keeper {
    data: Data,
    known: HashSet<String>,
    next_offset: i64,
    new: PendingContents,
}

impl Keeper {
    pub fn new(data: Data) -> Self {
        Keeper { data, known: HashSet::new(), next_offset: 0, new: PendingContents::default() }
    }

    /// The hash of what a thread is about to write; none where contents are not asked for. What
    /// cannot be read is left out, and counted by the second number, in bytes.
    pub fn note(
        &mut self,
        memory: &dyn ProgramMemory,
        written: &[(u64, u64)],
    ) -> (Option<String>, u64) {
        if self.data == Data::None || written.is_empty() {
            return (None, 0);
        }
        let (mut hash, mut unread) = (Sha256::new(), 0);
        let start = self.new.bytes.len();
        let mut piece = Vec::new();
        for (address, length) in written {
            let mut done = 0;
            while done < *length {
                piece.resize(PIECE_BYTES.min(length - done) as usize, 0);
                let got = memory.read(address.wrapping_add(done), &mut piece);
                hash.update(&piece[..got]);
                if self.data == Data::Keep {
                    self.new.bytes.extend_from_slice(&piece[..got]);
                }
                done += got as u64;
                if got < piece.len() {
                    unread += length - done;
                    break;
                }
            }
        }
        let mut hash = format!("{:x}", hash.finalize());
        hash.truncate(2 * HASH_BYTES);
        if self.data == Data::Keep {
            self.keep(&hash, start);
        }
        (Some(hash), unread)
    }

    fn keep(&mut self, hash: &str, start: usize) {
        if !self.known.insert(hash.to_owned()) {
            self.new.bytes.truncate(start);
            return;
        }
        let length = (self.new.bytes.len() - start) as i64;
        self.new.rows.push(Content {
            data: hash.to_owned(),
            offset_bytes: self.next_offset,
            length_bytes: length,
        });
        self.next_offset += length;
    }

    /// Bytes that wait to be written.
    pub fn waiting_bytes(&self) -> usize {
        self.new.waiting_bytes()
    }

    /// What is new since the last time.
    pub fn take(&mut self) -> PendingContents {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::ProcessMemory;
    use super::*;

    #[test]
    fn contents_are_kept_once_and_found_again() {
        let own = &ProcessMemory(std::process::id() as i32);
        let text = b"abcabc";
        let piece = |from: usize| (text[from..].as_ptr() as u64, 3);
        let mut keeper = Keeper::new(Data::Keep);
        let (first, unread) = keeper.note(own, &[piece(0)]);
        // The SHA-256 of "abc" of FIPS 180-2, appendix B.1.
        assert_eq!((first.as_deref(), unread), (Some("ba7816bf8f01cfea414140de5dae2223"), 0));
        assert_eq!(keeper.note(own, &[piece(3)]).0, first);
        assert_eq!(keeper.note(own, &[(8, 5)]).1, 5);
        let both = keeper.note(own, &[piece(0), piece(3)]).0.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let new = keeper.take();
        let row = new.rows.iter().find(|row| row.data == both).unwrap().clone();
        assert_eq!((row.offset_bytes, row.length_bytes), (3, 6));
        new.append_to(directory.path(), &Segments::new(directory.path())).unwrap();
        assert_eq!(std::fs::read(directory.path().join("contents.bin")).unwrap(), b"abcabcabc");
        assert_eq!(Keeper::new(Data::None).note(own, &[piece(0)]), (None, 0));
        assert_eq!(Keeper::new(Data::Hash).note(own, &[piece(0)]).0, first);
    }
}
