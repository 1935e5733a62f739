//! Bytes that were read from the ring and not yet processed. In live traces a separate thread
//! reads: it empties the ring every few milliseconds into bounded memory, while rows are made and
//! written. So slow processing does not delay the reading.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::source::RecordSource;

/// Records are handed on in pieces of about this size.
const PIECE_BYTES: usize = 1 << 20;

/// Between two looks at the ring: short while much comes, long while nothing does. At 300,000 bios
/// a second 32 MiB take 300 ms to fill.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(20);
const MUCH_BYTES: usize = 64 << 10;

/// Of the reading thread, as nice(1) counts: it copies and sleeps, and must not come late.
const PRIORITY: i32 = -20;

/// The ring with what came out of it.
pub struct Drain {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    taken: Mutex<Taken>,
    is_over: AtomicBool,
}

struct Taken {
    ring: Box<dyn RecordSource>,
    /// (length u32, record) one after the other.
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Drain {
    /// Reads only when it is asked to.
    pub fn new(ring: Box<dyn RecordSource>) -> Self {
        let taken = Mutex::new(Taken { ring, pieces: VecDeque::new(), bytes: 0 });
        let shared = Arc::new(Shared { taken, is_over: AtomicBool::new(false) });
        Drain { shared, thread: None }
    }

    /// Reads in a thread of its own from now on, unless so many bytes were not taken.
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
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let mut taken = self.shared.lock();
        let piece = taken.pieces.pop_front()?;
        taken.bytes -= piece.len();
        Some(piece)
    }

    /// Bytes in the ring.
    pub fn waiting_bytes(&self) -> usize {
        self.shared.lock().ring.waiting_bytes()
    }

    /// Bytes read from it and not taken.
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
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

fn empty(shared: &Shared, limit_bytes: usize) {
    // Of this thread alone (setpriority(2), NOTES); it reads anyway if it may not.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    while !shared.is_over.load(Ordering::Relaxed) {
        let read = shared.lock().read(limit_bytes);
        thread::sleep(if read > MUCH_BYTES { SHORT } else { LONG });
    }
}
