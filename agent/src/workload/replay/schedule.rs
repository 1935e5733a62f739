//! When the steps of a replay are due: from their times in the recording to moments on the clock. A
//! pause, in which a tracer empties its buffers, moves all that come after it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::settings::Timing;
use crate::tables::clock::now_ns;

/// The times of one replay.
#[derive(Debug)]
pub struct Schedule {
    timing: Timing,
    percent: u32,
    /// When the first step of all was to be made.
    start_ns: OnceLock<i64>,
    /// What all pauses have taken.
    paused_ns: AtomicI64,
    /// When a thread stopped last, until a pause is over; 0: none has.
    stopped_ns: AtomicI64,
    over: Mutex<()>,
}

impl Schedule {
    pub fn new(timing: Timing, percent: u32) -> Self {
        Self {
            timing,
            percent,
            start_ns: OnceLock::new(),
            paused_ns: AtomicI64::new(0),
            stopped_ns: AtomicI64::new(0),
            over: Mutex::new(()),
        }
    }

    /// When a step is due that was recorded so long after the first; none where it is not timed.
    pub fn due_ns(&self, after_ns: i64) -> Option<i64> {
        let start_ns = *self.start_ns.get_or_init(now_ns);
        match self.timing {
            Timing::None => None,
            Timing::Recorded => {
                let paused_ns = self.paused_ns.load(Ordering::Relaxed);
                Some(start_ns.saturating_add(paused_ns).saturating_add(self.scaled(after_ns)))
            }
        }
    }

    /// A time of the recording as long as it is here.
    pub fn scaled(&self, ns: i64) -> i64 {
        let ns = i128::from(ns) * i128::from(self.percent) / 100;
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// A thread stops for a pause.
    pub fn stop(&self) {
        self.stopped_ns.fetch_max(now_ns(), Ordering::SeqCst);
    }

    /// A thread goes on after a pause, or begins. The first to do so moves what is due; all threads
    /// had stopped before.
    pub fn go_on(&self) {
        let held = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped_ns = self.stopped_ns.swap(0, Ordering::SeqCst);
        if stopped_ns > 0 {
            self.paused_ns.fetch_add(now_ns() - stopped_ns, Ordering::SeqCst);
        }
        drop(held);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pause_moves_what_is_due() {
        let schedule = Schedule::new(Timing::Recorded, 200);
        let first = schedule.due_ns(0).unwrap();
        assert_eq!(schedule.due_ns(500), Some(first + 1000));
        schedule.go_on();
        assert_eq!(schedule.due_ns(500), Some(first + 1000));
        schedule.stop();
        sleep(Duration::from_millis(5));
        schedule.go_on();
        schedule.go_on();
        let moved = schedule.due_ns(500).unwrap() - first - 1000;
        assert!(moved >= 5_000_000, "{moved}");
        assert_eq!(Schedule::new(Timing::None, 100).due_ns(500), None);
    }
}
