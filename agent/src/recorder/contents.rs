//! The memory of a program as it is recorded: strings and structures that arguments point to, and
//! the contents that calls write, as hashes or as they are, as the options of the recorder say.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::tables::recording::Content;
use crate::tables::write::Segments;
use crate::tables::write::WriteError;

/// The part of contents that is recorded.
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

    /// Return what is new since the last time.
    pub fn take_new(&mut self) -> PendingContents {
        std::mem::take(&mut self.new)
    }
}

/// Says what is recorded.
pub enum RecordedProgram<'a> {
    Command(&'a [String]),
    Process(i32),
}

/// The form in which it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecordingOptions {
    pub by: Method,
    pub data: Data,
    /// The size of the ring that the kernel's program fills.
    pub ring_bytes: u32,
}

/// The way to see calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// EBPF where that is allowed, else ptrace
    Auto,
    Ebpf,
    Ptrace,
}

/// PATH_MAX, with its zero.
const MOST_PATH: usize = 4096;
const PAGE: usize = 4096;
/// UIO_MAXIOV.
const MOST_VECTORS: usize = 1024;

/// Memory that calls point to.
pub trait ProgramMemory {
    /// Reads into `buffer` what is at `address`; returns how many bytes could be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize;
}

/// That of a process, as it is now.
pub struct ProcessMemory(pub i32);

impl ProgramMemory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: buffer.len() };
        // SAFETY: the local buffer is ours; the kernel checks the other's addresses.
        let got =
            unsafe { libc::process_vm_readv(self.0, &raw const local, 1, &raw const remote, 1, 0) };
        usize::try_from(got).unwrap_or(0)
    }
}

/// Bytes at an address; none if they are not all there.
pub fn array<const N: usize>(
    memory: &(impl ProgramMemory + ?Sized),
    address: u64,
) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (address != 0 && memory.read(address, &mut bytes) == N).then_some(bytes)
}

/// A 64-bit number at an address.
pub fn number(memory: &(impl ProgramMemory + ?Sized), address: u64) -> Option<i64> {
    array(memory, address).map(i64::from_ne_bytes)
}

/// The bytes up to the zero: a path. None if it cannot be read or is too long, which the kernel
/// refuses as well.
pub fn string(memory: &(impl ProgramMemory + ?Sized), address: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 256];
    while address != 0 && bytes.len() < MOST_PATH {
        let at = address + bytes.len() as u64;
        // Not beyond a page: the next one may be nobody's.
        let left = (PAGE - at as usize % PAGE).min(buffer.len());
        let got = memory.read(at, &mut buffer[..left]);
        if let Some(end) = buffer[..got].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&buffer[..end]);
            return Some(bytes);
        }
        if got < left {
            return None;
        }
        bytes.extend_from_slice(&buffer[..got]);
    }
    None
}

/// Address and length of each of `count` buffers.
pub fn vectors(
    memory: &(impl ProgramMemory + ?Sized),
    address: u64,
    count: u64,
) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_VECTORS)?;
    let mut bytes = vec![0; count * 16];
    if memory.read(address, &mut bytes) != bytes.len() {
        return None;
    }
    let half = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    Some(bytes.chunks_exact(16).map(|it| (half(&it[..8]), half(&it[8..]))).collect())
}

#[cfg(test)]
mod tests {
    use super::{ProcessMemory, *};

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
        let new = keeper.take_new();
        let row = new.rows.iter().find(|row| row.data == both).unwrap().clone();
        assert_eq!((row.offset_bytes, row.length_bytes), (3, 6));
        new.append_to(directory.path(), &Segments::new(directory.path())).unwrap();
        assert_eq!(std::fs::read(directory.path().join("contents.bin")).unwrap(), b"abcabcabc");
        assert_eq!(Keeper::new(Data::None).note(own, &[piece(0)]), (None, 0));
        assert_eq!(Keeper::new(Data::Hash).note(own, &[piece(0)]).0, first);
    }

    fn own() -> ProcessMemory {
        ProcessMemory(std::process::id() as i32)
    }

    #[test]
    fn memory_is_read_up_to_its_end() {
        let text = c"a path";
        assert_eq!(string(&own(), text.as_ptr() as u64).unwrap(), b"a path");
        assert_eq!(string(&own(), 0), None);
        assert_eq!(string(&own(), 8), None);
        let long = vec![b'x'; 5000];
        assert_eq!(string(&own(), long.as_ptr() as u64), None);
        let value = -7_i64;
        assert_eq!(number(&own(), &raw const value as u64), Some(-7));
        assert_eq!(number(&own(), 0), None);
        let buffers = [(1_u64, 2_u64), (3, 4)];
        assert_eq!(vectors(&own(), buffers.as_ptr() as u64, 2).unwrap(), buffers);
        assert_eq!(vectors(&own(), buffers.as_ptr() as u64, 1 << 40), None);
    }
}
