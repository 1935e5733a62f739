//! The user-space end of a ring (kernel/bpf/ring.bpf.h writes the other end): reads the memory of
//! the ring's two maps; produces the bytes of whole records, and leaves zeros behind.
//!
//! In live traces a thread of its own reads (`Drain`): it empties the ring every few milliseconds
//! into bounded memory, while rows are made and written. So slow processing does not delay the
//! reading.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A ring that records come from.
pub trait RecordSource: Send {
    /// Bytes that wait to be read.
    fn waiting_bytes(&self) -> usize;

    /// Appends (length u32, record) of every record that is whole by now, in their order, up to
    /// about `limit_bytes` at a time.
    fn read(&mut self, into: &mut Vec<u8>, limit_bytes: usize);
}

/// Yield the records of a piece that a source gave; the length of one that is not all there.
pub fn split_records(mut rest: &[u8]) -> impl Iterator<Item = Result<&[u8], usize>> {
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let record = after.split_at_checked(length);
        rest = record.map_or(&[], |(_, after)| after);
        Some(record.map(|(record, _)| record).ok_or(length))
    })
}

/// CHUNK_BYTES and CHUNK_SLACK_BYTES of kernel/bpf: a record begins in a chunk, and may end in
/// its slack.
pub const CHUNK_BYTES: u32 = 1 << 16;
const CHUNK_SLACK_BYTES: usize = 4352;
const CHUNK_STRIDE: usize = CHUNK_BYTES as usize + CHUNK_SLACK_BYTES;
const LENGTH_BYTES: usize = size_of::<u64>();

/// The most bytes that are read before their room is given back: the programs look there each time.
const GIVE_BACK_BYTES: u64 = 1 << 18;

/// struct ring of ring.h.
#[repr(C)]
pub struct Ends {
    head: AtomicU64,
    padding: [u64; 15],
    tail: AtomicU64,
    more_padding: [u64; 15],
}

const _: () = assert!(size_of::<Ends>() == 256);
const _: () = assert!(CHUNK_STRIDE == 69888);

/// The reader; there must be one only.
pub struct Ring {
    ends: NonNull<Ends>,
    chunks: NonNull<u8>,
    mapped_bytes: usize,
    /// A power of two.
    chunk_count: u64,
}

impl Ring {
    /// Maps the chunks. `ends` must stay mapped as long as this lives.
    ///
    /// # Errors
    /// If the kernel refuses to map them.
    pub fn map(
        records: BorrowedFd<'_>,
        ends: NonNull<Ends>,
        chunk_count: u32,
    ) -> Result<Self, io::Error> {
        let mapped_bytes = chunk_count as usize * CHUNK_STRIDE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let chunks =
            unsafe { mmap(null_mut(), mapped_bytes, protection, MapFlags::SHARED, records, 0)? };
        let chunks = NonNull::new(chunks.cast()).expect("no mapping is at address 0");
        Ok(Ring { ends, chunks, mapped_bytes, chunk_count: chunk_count.into() })
    }

    fn ends(&self) -> &Ends {
        // SAFETY: mapped as long as we live, as `map` demands; the programs change it atomically.
        unsafe { self.ends.as_ref() }
    }

    /// Return the address of a position.
    fn place(&self, position: u64) -> NonNull<u8> {
        let chunk = (position / u64::from(CHUNK_BYTES)) & (self.chunk_count - 1);
        let offset = position % u64::from(CHUNK_BYTES);
        // SAFETY: the chunk is one of those mapped, and the offset within it.
        unsafe { self.chunks.add(chunk as usize * CHUNK_STRIDE + offset as usize) }
    }
}

impl RecordSource for Ring {
    fn waiting_bytes(&self) -> usize {
        let (head, tail) = (&self.ends().head, &self.ends().tail);
        head.load(Ordering::Relaxed).wrapping_sub(tail.load(Ordering::Relaxed)) as usize
    }

    fn read(&mut self, into: &mut Vec<u8>, limit_bytes: usize) {
        let head = self.ends().head.load(Ordering::Acquire);
        let mut tail = self.ends().tail.load(Ordering::Relaxed);
        let mut given_back = tail;
        while tail < head && into.len() < limit_bytes {
            let place = self.place(tail);
            // SAFETY: positions are multiples of 8, so that the length is in the chunk, and
            // aligned. The program that writes it does so last of all.
            let length = unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) };
            let length = length.load(Ordering::Acquire) as usize;
            if length == 0 {
                break;
            }
            assert!(length <= CHUNK_SLACK_BYTES - LENGTH_BYTES, "a record of {length} bytes");
            into.extend_from_slice(&(length as u32).to_le_bytes());
            let whole_bytes = LENGTH_BYTES + length.next_multiple_of(8);
            // SAFETY: the record ends in the chunk or its slack. It is whole, so that no program
            // touches it before the tail has passed it.
            unsafe {
                let record = place.as_ptr().add(LENGTH_BYTES);
                into.extend_from_slice(std::slice::from_raw_parts(record, length));
                place.as_ptr().write_bytes(0, whole_bytes);
            }
            tail += whole_bytes as u64;
            if tail - given_back >= GIVE_BACK_BYTES {
                self.ends().tail.store(tail, Ordering::Release);
                given_back = tail;
            }
        }
        self.ends().tail.store(tail, Ordering::Release);
    }
}

// SAFETY: what it points to is mapped for the whole process, and it is the only one to read there.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and used by nobody else. It can only fail for a wrong address.
        let _ = unsafe { munmap(self.chunks.as_ptr().cast::<c_void>(), self.mapped_bytes) };
    }
}

/// Records are handed on in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;

/// Between two looks at the ring: short while much comes, long while nothing does. At 300,000 bios
/// a second 32 MiB take 300 ms to fill.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(20);
const MUCH_BYTES: usize = 64 << 10;

/// The priority of the reading thread, as nice(1) counts: it copies and sleeps, and must not come
/// late.
const PRIORITY: i32 = -20;

/// The ring with what came out of it.
pub struct Drain {
    shared: Arc<SharedBacklog>,
    thread: Option<JoinHandle<()>>,
}

struct SharedBacklog {
    backlog: Mutex<Backlog>,
    is_over: AtomicBool,
}

struct Backlog {
    ring: Box<dyn RecordSource>,
    /// (length u32, record) one after the other.
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Drain {
    /// Reads only when it is asked to.
    pub fn new(ring: Box<dyn RecordSource>) -> Self {
        let backlog = Mutex::new(Backlog { ring, pieces: VecDeque::new(), bytes: 0 });
        let shared = Arc::new(SharedBacklog { backlog, is_over: AtomicBool::new(false) });
        Drain { shared, thread: None }
    }

    /// Reads in a thread of its own from now on, unless so many bytes wait.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(&mut self, limit_bytes: usize) -> io::Result<()> {
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let work = move || empty(&shared, limit_bytes);
            self.thread = Some(thread::Builder::new().name("joj-drain".into()).spawn(work)?);
        }
        Ok(())
    }

    /// Moves what waits in the ring to memory of ours, all of it.
    pub fn collect(&mut self) {
        self.shared.lock().read(usize::MAX);
    }

    /// A piece of what was read, the oldest; none where nothing is left.
    pub fn take_piece(&mut self) -> Option<Vec<u8>> {
        let mut backlog = self.shared.lock();
        let piece = backlog.pieces.pop_front()?;
        backlog.bytes -= piece.len();
        Some(piece)
    }

    /// Bytes in the ring.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.lock().ring.waiting_bytes()
    }

    /// Bytes of the backlog.
    pub fn read_bytes(&self) -> usize {
        self.shared.lock().bytes
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

impl SharedBacklog {
    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    /// Reads all that is whole, unless `limit_bytes` wait to be taken; gives how much it was.
    fn read(&mut self, limit_bytes: usize) -> usize {
        let before = self.bytes;
        while self.bytes < limit_bytes && self.ring.waiting_bytes() > 0 {
            let mut piece = Vec::with_capacity(PIECE_BYTES.min(self.ring.waiting_bytes()));
            self.ring.read(&mut piece, PIECE_BYTES);
            if piece.is_empty() {
                break;
            }
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
        self.bytes - before
    }
}

fn empty(shared: &SharedBacklog, limit_bytes: usize) {
    // Of this thread alone (setpriority(2), NOTES); it reads anyway if it may not.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    while !shared.is_over.load(Ordering::Relaxed) {
        let read = shared.lock().read(limit_bytes);
        thread::sleep(if read > MUCH_BYTES { SHORT } else { LONG });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsFd;

    /// A program that claims places and fills them, in memory like the maps'.
    struct Writer {
        ends: Box<Ends>,
        ring: Ring,
    }

    impl Writer {
        fn new(chunk_count: u32) -> Self {
            let file = tempfile::tempfile().expect("a file");
            let bytes = u64::from(chunk_count) * CHUNK_STRIDE as u64;
            file.set_len(bytes).expect("room");
            let zero = AtomicU64::new;
            let (padding, more_padding) = ([0; 15], [0; 15]);
            let ends = Ends { head: zero(0), padding, tail: zero(0), more_padding };
            let mut ends = Box::new(ends);
            let ring = Ring::map(file.as_fd(), NonNull::from(&mut *ends), chunk_count);
            Writer { ends, ring: ring.expect("a mapping") }
        }

        /// As ring.bpf.h does: the place of the record, or None where there is no room.
        fn reserve(&mut self, size: usize) -> Option<NonNull<u8>> {
            let need = (LENGTH_BYTES + size.next_multiple_of(8)) as u64;
            let head = self.ends.head.load(Ordering::Relaxed);
            let tail = self.ends.tail.load(Ordering::Relaxed);
            if head + need - tail > self.ring.chunk_count * u64::from(CHUNK_BYTES) {
                return None;
            }
            self.ends.head.store(head + need, Ordering::Relaxed);
            Some(self.ring.place(head))
        }

        fn publish(place: NonNull<u8>, record: &[u8]) {
            // SAFETY: reserved for a record of this size.
            unsafe {
                let to = place.as_ptr().add(LENGTH_BYTES);
                to.copy_from_nonoverlapping(record.as_ptr(), record.len());
                place.cast().write(record.len() as u64);
            }
        }
    }

    fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
        split_records(bytes).map(|record| record.unwrap().to_vec()).collect()
    }

    #[test]
    fn a_record_that_is_not_whole_holds_up_those_behind_it() {
        let mut writer = Writer::new(1);
        let (first, second) = (writer.reserve(48).unwrap(), writer.reserve(8).unwrap());
        Writer::publish(second, &[2; 8]);
        let mut bytes = Vec::new();
        writer.ring.read(&mut bytes, usize::MAX);
        assert!(bytes.is_empty());
        assert_eq!(writer.ring.waiting_bytes(), 56 + 16);
        Writer::publish(first, &[1; 48]);
        writer.ring.read(&mut bytes, usize::MAX);
        assert_eq!(split(&bytes), [vec![1; 48], vec![2; 8]]);
        assert_eq!(writer.ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_full_ring_takes_more_when_it_was_read() {
        let mut writer = Writer::new(1);
        let mut count = 0;
        while let Some(place) = writer.reserve(4000) {
            Writer::publish(place, &[7; 4000]);
            count += 1;
        }
        assert_eq!(count, CHUNK_BYTES as usize / 4008);
        let mut bytes = Vec::new();
        writer.ring.read(&mut bytes, usize::MAX);
        assert_eq!(split(&bytes).len(), count);
        assert!(writer.reserve(4000).is_some());
    }

    proptest! {
        /// Whatever the sizes, and however often it is read: every record that found room comes
        /// out once, in order, through many rounds of the ring.
        #[test]
        fn published_records_are_read_in_order(
            sizes in prop::collection::vec((1..4300_usize, 0..60_u32), 1..900),
        ) {
            let mut writer = Writer::new(2);
            let (mut bytes, mut sent) = (Vec::new(), Vec::new());
            for (number, (size, read)) in sizes.into_iter().enumerate() {
                if let Some(place) = writer.reserve(size) {
                    let record = vec![(number % 251) as u8; size];
                    Writer::publish(place, &record);
                    sent.push(record);
                }
                if read == 0 {
                    writer.ring.read(&mut bytes, usize::MAX);
                }
            }
            writer.ring.read(&mut bytes, usize::MAX);
            prop_assert_eq!(split(&bytes), sent);
        }
    }
}
