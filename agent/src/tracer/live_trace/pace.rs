//! How fast a live trace works: how long it pauses between looks at the ring, when it writes, and
//! whether it goes before other work of the machine.

use std::time::{Duration, Instant};

/// Rows are written when this many requests wait, or after this time.
pub const ROUND_REQUESTS: usize = 16_384;
const ROUND: Duration = Duration::from_secs(10);

/// How long records may wait to be read: longer when none come. When many wait, they are read at
/// once.
const USUAL: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_millis(100);
const MUCH_BYTES: usize = 8 << 20;

/// Nice value of the thread that makes rows when it is late: ahead of tasks that compute.
const PRIORITY: i32 = -15;

/// Of one trace.
pub struct Pace {
    /// As much may wait for this thread without being lost.
    backlog_limit: usize,
    hurries: bool,
    pause: Duration,
    round_begin: Instant,
}

impl Pace {
    /// Begins now.
    pub fn new(backlog_limit: usize) -> Self {
        Pace { backlog_limit, hurries: false, pause: USUAL, round_begin: Instant::now() }
    }

    /// Until the next look.
    pub fn pause(&self) -> Duration {
        self.pause
    }

    /// The machine's own work goes first, until so much waits for us that it may be lost.
    pub fn hurry(&mut self, backlog: usize) {
        let limit = self.backlog_limit / if self.hurries { 16 } else { 4 };
        if self.hurries != (backlog > limit) {
            self.hurries = !self.hurries;
            // Of this thread (setpriority(2), NOTES); it goes on as it is if it may not.
            let priority = if self.hurries { PRIORITY } else { 0 };
            let _ = rustix::process::setpriority_process(None, priority);
        }
    }

    /// So many bytes waited before this look, and wait after it.
    pub fn looked(&mut self, before: usize, after: usize) {
        self.pause = match after {
            MUCH_BYTES.. => Duration::ZERO,
            _ if before > 0 => USUAL,
            _ => LONG.min(self.pause.max(USUAL) * 2),
        };
    }

    /// So many bytes are too many to wait with the end for.
    pub fn is_much(bytes: usize) -> bool {
        bytes > MUCH_BYTES
    }

    /// So many requests that wait to be written are enough.
    pub fn is_enough(requests: usize) -> bool {
        requests >= ROUND_REQUESTS
    }

    /// The last round of rows was written long ago.
    pub fn is_round_due(&self) -> bool {
        self.round_begin.elapsed() >= ROUND
    }

    /// A round was written.
    pub fn begin_round(&mut self) {
        self.round_begin = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_at_once_while_much_waits_and_seldom_while_nothing_does() {
        let mut pace = Pace::new(1 << 30);
        let mut after = |before, after| {
            pace.looked(before, after);
            pace.pause()
        };
        assert_eq!(after(9 << 20, MUCH_BYTES), Duration::ZERO);
        assert_eq!(after(100, 0), USUAL);
        assert_eq!([after(0, 0), after(0, 0), after(0, 0)], [USUAL * 2, USUAL * 4, LONG]);
    }
}
