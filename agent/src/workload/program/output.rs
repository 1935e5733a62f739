//! What a program writes to its standard output and standard error: the beginning is kept, the
//! rest is counted; one that writes without end is cut off.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What is kept of it.
const KEPT_BYTES: usize = 64 << 10;
/// After so many bytes nobody reads any more, and who writes on gets SIGPIPE.
const MOST_BYTES: u64 = 16 << 20;
/// Between two looks at the tracer's memory.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Reads until nobody writes any more.
#[derive(Debug, Default)]
pub struct ProgramOutput {
    kept: Vec<u8>,
    pub bytes: u64,
}

impl ProgramOutput {
    /// Waits for output, but not long; false where there will be none any more.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&mut self, pipe: &mut PipeReader) -> std::io::Result<bool> {
        let ready = {
            let mut ends = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
            poll(&mut ends, Some(&LOOK))? > 0
        };
        if !ready {
            return Ok(true);
        }
        let mut piece = [0; 16 << 10];
        let length = pipe.read(&mut piece)?;
        self.bytes += length as u64;
        let room = KEPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&piece[..length.min(room)]);
        Ok(length > 0)
    }

    /// Whether it is cut off from here on.
    pub fn is_too_long(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// The beginning, as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
