//! The memory of a replay that its calls point to. Each thread has bytes to read into and to write
//! from, buffers of them, offsets and locks. The contents that a recording kept are read from its
//! contents.bin before the first step, so that no step waits for a disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rand_chacha::rand_core::RngCore;
use sha2::{Digest, Sha256};

use super::plan::{Action, CallArgument, CallEffect, KeptPiece, Lane};
use crate::workload::draw::generator;
use crate::workload::error::WorkloadError;
use crate::workload::files::engine::AlignedBuffer;

/// The number of places at which written bytes may begin, so that blocks are not all the same.
const PLACES: i64 = 16;
const PLACE_BYTES: usize = 4096;
/// The bytes that files are filled with before the first call, again and again.
pub const CHUNK_BYTES: usize = 1 << 20;
/// The bytes that are stored in a mapping at once.
const STORE_BYTES: usize = 64 << 10;

/// Memory of one thread.
pub struct Memory {
    into: AlignedBuffer,
    from: AlignedBuffer,
    place: usize,
    /// The address of the kept contents that the call under way writes.
    kept: Option<usize>,
    vectors: Vec<libc::iovec>,
    offsets: [i64; 2],
    next_offset: usize,
    lock: libc::flock,
    /// A path that a call names, with the zero that ends it.
    path: String,
}

// SAFETY: the addresses in `vectors` are of its own buffers, and are made anew for each call.
unsafe impl Send for Memory {}

/// Bytes that the calls of a lane read into and write from at the most.
pub fn bytes_needed(lane: &Lane) -> (usize, usize) {
    let (mut into, mut from) = (0, 0);
    for step in &lane.steps {
        let Action::Call { arguments, effect, .. } = &step.action else { continue };
        for argument in arguments {
            match argument {
                CallArgument::Into(bytes) | CallArgument::VectorsInto { bytes, .. } => {
                    into = into.max(*bytes as usize);
                }
                CallArgument::From(bytes) | CallArgument::VectorsFrom { bytes, .. }
                    if step.writes.is_none() =>
                {
                    from = from.max(*bytes as usize);
                }
                _ => {}
            }
        }
        if matches!(effect, CallEffect::Dirties(..)) {
            from = from.max(STORE_BYTES);
        }
    }
    (into, from)
}

/// Return the place in the stream of bytes at which the contents of a call begin.
pub fn place_of(call: i64) -> usize {
    call.rem_euclid(PLACES) as usize * PLACE_BYTES
}

/// The stream of bytes that the calls of some lanes are written from, and that files are filled
/// with before.
pub fn stream_of(lanes: &[Lane], seed: u64) -> Vec<u8> {
    let longest = lanes.iter().map(|lane| bytes_needed(lane).1).max().unwrap_or(0);
    let mut stream = vec![0; (longest + PLACES as usize * PLACE_BYTES).max(CHUNK_BYTES)];
    generator(seed, 0).fill_bytes(&mut stream);
    stream
}

impl Memory {
    /// For the calls of a lane. No device can make shorter what is written.
    pub fn new(lane: &Lane, seed: u64) -> Self {
        let (into, from) = bytes_needed(lane);
        let places = if from > 0 { PLACES as usize * PLACE_BYTES } else { 0 };
        let (into, mut from) = (AlignedBuffer::new(into), AlignedBuffer::new(from + places));
        generator(seed, 0).fill_bytes(from.bytes());
        // SAFETY: a struct flock is numbers, of which zero is one.
        let lock = unsafe { std::mem::zeroed() };
        let (vectors, offsets, path) = (Vec::new(), [0; 2], String::new());
        Self { into, from, place: 0, kept: None, vectors, offsets, next_offset: 0, lock, path }
    }

    /// A call of a number begins, and writes what was kept at an address, if it was.
    pub fn begin(&mut self, call: i64, kept: Option<usize>) {
        self.kept = kept;
        self.place = place_of(call);
        self.next_offset = 0;
    }

    pub fn address_to_read_into(&mut self) -> i64 {
        self.into.bytes().as_mut_ptr() as i64
    }

    pub fn address_to_write_from(&mut self) -> i64 {
        if let Some(address) = self.kept {
            return address as i64;
        }
        // Nothing is written from an empty buffer.
        self.from.bytes().get_mut(self.place..).map_or(0, |bytes| bytes.as_mut_ptr() as i64)
    }

    /// So many buffers of so many bytes together; the last has what the others leave.
    pub fn vectors(&mut self, count: u16, bytes: u32, from: bool) -> i64 {
        let begin = if from { self.address_to_write_from() } else { self.address_to_read_into() };
        let (count, bytes) = (usize::from(count), bytes as usize);
        let each = bytes.checked_div(count).unwrap_or(0);
        self.vectors.clear();
        for number in 0..count {
            let iov_base = (begin as usize + number * each) as *mut libc::c_void;
            let is_last = number + 1 == count;
            let iov_len = if is_last { bytes - number * each } else { each };
            self.vectors.push(libc::iovec { iov_base, iov_len });
        }
        self.vectors.as_ptr() as i64
    }

    pub fn offset(&mut self, offset: i64) -> i64 {
        let place = &mut self.offsets[self.next_offset % 2];
        self.next_offset += 1;
        *place = offset;
        (&raw mut *place) as i64
    }

    /// The path of an open file of this process (proc_pid_fd(5)).
    pub fn path_of(&mut self, descriptor: i32) -> i64 {
        self.path = format!("/proc/self/fd/{descriptor}\0");
        self.path.as_ptr() as i64
    }

    pub fn lock(&mut self, lock: libc::flock) -> i64 {
        self.lock = lock;
        (&raw mut self.lock) as i64
    }

    /// Stores so many bytes in a mapping, as far as it has a file's pages. By a call, for which a
    /// page that is not there is an error and no signal (process_vm_writev(2)).
    pub fn store(&mut self, address: usize, bytes: u64) {
        let (mut address, mut left) = (address, bytes as usize);
        let contents = self.from.bytes();
        while left > 0 {
            let iov_len = left.min(contents.len());
            let local = libc::iovec { iov_base: contents.as_mut_ptr().cast(), iov_len };
            let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len };
            // SAFETY: the local buffer is ours; the kernel checks the other address, which is in a
            // mapping of the replay that holds no object.
            let stored = unsafe {
                libc::process_vm_writev(
                    libc::getpid(),
                    &raw const local,
                    1,
                    &raw const remote,
                    1,
                    0,
                )
            };
            let Some(stored @ 1..) = usize::try_from(stored).ok() else { return };
            (address, left) = (address + stored, left - stored);
        }
    }
}

/// Most bytes of all contents together.
const MOST_KEPT_BYTES: usize = 1 << 30;
/// The units of a write past the page cache: its length and place are multiples of a device's
/// block.
const BLOCKS_BYTES: [usize; 2] = [4096, 512];

/// Contents by their number in the plan.
#[derive(Default)]
pub struct KeptContents {
    memory: Option<AlignedBuffer>,
    /// The places at which the contents begin.
    begins: Vec<usize>,
}

impl KeptContents {
    /// Reads the contents of a plan.
    ///
    /// # Errors
    /// Naming the file, if they are not there, are not what was recorded, or are too many.
    pub fn read(recording: &Path, pieces: &[KeptPiece]) -> Result<Self, WorkloadError> {
        if pieces.is_empty() {
            return Ok(Self::default());
        }
        let path = recording.join("contents.bin");
        let refuse = |what: String| WorkloadError::refusal(format!("{}: {what}", path.display()));
        let (begins, bytes) = places(pieces);
        if bytes > MOST_KEPT_BYTES {
            return Err(refuse(format!(
                "the contents that its calls write take {bytes} bytes of memory, more than \
                 {MOST_KEPT_BYTES}; record without --data keep, or a shorter run"
            )));
        }
        let file = File::open(&path).map_err(|error| refuse(error.to_string()))?;
        let mut memory = AlignedBuffer::new(bytes);
        for (piece, begin) in pieces.iter().zip(&begins) {
            let into = &mut memory.bytes()[*begin..begin + piece.bytes as usize];
            file.read_exact_at(into, piece.offset)
                .map_err(|error| refuse(format!("at {}: {error}", piece.offset)))?;
            if !format!("{:x}", Sha256::digest(&*into)).starts_with(&piece.hash) {
                return Err(refuse(format!(
                    "{} bytes at {} are not those that were recorded as {}; record it again",
                    piece.bytes, piece.offset, piece.hash
                )));
            }
        }
        Ok(Self { memory: Some(memory), begins })
    }

    /// All of them, and what lies between.
    pub fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], AlignedBuffer::as_slice)
    }

    /// Return the place of each in these bytes, if so many others are before them.
    pub fn places_after(&self, bytes: usize) -> Vec<usize> {
        self.begins.iter().map(|begin| bytes + begin).collect()
    }

    /// Return the address of contents; they stay there as long as this lives, and nobody changes
    /// them.
    pub fn address(&self, number: u32) -> usize {
        self.bytes()[self.begins[number as usize]..].as_ptr() as usize
    }
}

/// Return the places at which the contents begin, and how many bytes they take together.
fn places(pieces: &[KeptPiece]) -> (Vec<usize>, usize) {
    let mut end = 0_usize;
    let begins = pieces.iter().map(|piece| {
        let bytes = piece.bytes as usize;
        let block = BLOCKS_BYTES.into_iter().find(|block| bytes.is_multiple_of(*block));
        let begin = end.next_multiple_of(block.unwrap_or(1));
        end = begin + bytes;
        begin
    });
    (begins.collect(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, contents: &[u8]) -> KeptPiece {
        let mut hash = format!("{:x}", Sha256::digest(contents));
        hash.truncate(32);
        KeptPiece { hash, offset, bytes: contents.len() as u32 }
    }

    #[test]
    fn contents_are_read_to_where_a_device_can_take_them() {
        let folder = tempfile::tempdir().unwrap();
        let (short, block) = (b"abc".as_slice(), [7; 4096]);
        std::fs::write(folder.path().join("contents.bin"), [short, &block].concat()).unwrap();
        let pieces = [piece(0, short), piece(3, &block)];
        let kept = KeptContents::read(folder.path(), &pieces).unwrap();
        assert!(kept.address(1).is_multiple_of(4096));
        let of = |number: u32| {
            let bytes = pieces[number as usize].bytes as usize;
            // SAFETY: the contents are there, and nobody writes to them.
            unsafe { std::slice::from_raw_parts(kept.address(number) as *const u8, bytes) }
        };
        assert_eq!((of(0), of(1)), (short, block.as_slice()));
        for (wrong, words) in [
            (piece(5000, b"abc"), "at 5000"),
            (KeptPiece { offset: 1, ..piece(0, b"abc") }, "are not those that were recorded"),
        ] {
            let refused = KeptContents::read(folder.path(), &[wrong]).err().unwrap().to_string();
            assert!(refused.contains("contents.bin: ") && refused.contains(words), "{refused}");
        }
        let large = KeptPiece { bytes: u32::MAX, ..piece(0, b"") };
        let refused = KeptContents::read(folder.path(), &[large]).err().unwrap().to_string();
        assert!(refused.contains("more than 1073741824"), "{refused}");
    }
}
