//! What the child process of a load says to its parent, and hears of it.

use std::fs::File;
use std::io::Write;

use anyhow::Context;

/// What the child says when it has begun.
pub const READY: &str = "ready\n";

/// The child's side: says that it has begun, and when to stop.
pub struct Signals {
    input: File,
}

impl Signals {
    /// Says that it has begun.
    ///
    /// # Errors
    /// If nobody can be told.
    pub fn begin() -> anyhow::Result<Self> {
        let mut output = std::io::stdout();
        output.write_all(READY.as_bytes()).and_then(|()| output.flush()).context("saying ready")?;
        Ok(Self { input: File::open("/proc/self/fd/0").context("standard input")? })
    }

    /// Whether the parent wants an end, waiting for it for so long at most.
    pub fn shall_stop(&self, wait_ns: i64) -> bool {
        use std::os::fd::AsRawFd;
        let wait_ns = wait_ns.max(0);
        let time =
            libc::timespec { tv_sec: wait_ns / 1_000_000_000, tv_nsec: wait_ns % 1_000_000_000 };
        let mut poll = libc::pollfd { fd: self.input.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one live pollfd, a live timespec, and no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) };
        ready > 0
    }
}
