//! Computes when the steps of a replay are due: from their times in the recording to moments on the
//! clock. A pause, in which a tracer empties its buffers, moves all that come after it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::record::words;
use crate::tables::timeline::now_ns;

words! {
    /// The time of calls: at their recorded times, or as soon as those before them are over.
    Timing { Recorded = "recorded", None = "none" }
}

/// The time before a step is due when its thread stops sleeping and looks at the clock, where it
/// may. A sleeper is woken some tens of microseconds late, more if its processor slept too.
const LOOK_OUT_NS: i64 = 100_000;

/// The times of one replay.
#[derive(Debug)]
pub struct Schedule {
    timing: Timing,
    percent: u32,
    look_out_ns: i64,
    /// The time when the first step of all was to be made.
    start_ns: OnceLock<i64>,
    /// The time that all pauses have taken.
    paused_ns: AtomicI64,
    /// The time when a thread stopped last, until a pause is over; 0: none has.
    stopped_ns: AtomicI64,
    over: Mutex<()>,
}

impl Schedule {
    /// Return a schedule of so many threads on so many processors. A thread that looks at the clock
    /// keeps its processor: where each has not one of its own, all sleep until they are due. A
    /// guest has one.
    pub fn new(timing: Timing, percent: u32, threads: usize, processors: usize) -> Self {
        let may_look = processors > 1 && threads <= processors;
        Self {
            timing,
            percent,
            look_out_ns: if may_look { LOOK_OUT_NS } else { 0 },
            start_ns: OnceLock::new(),
            paused_ns: AtomicI64::new(0),
            stopped_ns: AtomicI64::new(0),
            over: Mutex::new(()),
        }
    }

    /// Return when a step is due that was recorded so long after the first; None where it is not
    /// timed.
    pub fn due_ns(&self, after_ns: i64) -> Option<i64> {
        let start_ns = *self.start_ns.get_or_init(now_ns);
        match self.timing {
            Timing::None => None,
            Timing::Recorded => {
                let paused_ns = self.paused_ns.load(Ordering::Relaxed);
                Some(start_ns.saturating_add(paused_ns).saturating_add(self.scale(after_ns)))
            }
        }
    }

    /// Until when a thread sleeps whose step is due then; after that it looks at the clock.
    pub fn wake_ns(&self, due_ns: i64) -> i64 {
        due_ns - self.look_out_ns
    }

    /// A time of the recording as long as it is here.
    pub fn scale(&self, ns: i64) -> i64 {
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
        let schedule = Schedule::new(Timing::Recorded, 200, 1, 1);
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
        assert_eq!(Schedule::new(Timing::None, 100, 1, 1).due_ns(500), None);
    }

    #[test]
    fn a_thread_with_a_processor_of_its_own_wakes_before_it_is_due() {
        let wakes = |threads, processors| {
            let due_ns = 1_000_000_000;
            Schedule::new(Timing::Recorded, 100, threads, processors).wake_ns(due_ns) - due_ns
        };
        assert_eq!((wakes(1, 2), wakes(2, 2)), (-LOOK_OUT_NS, -LOOK_OUT_NS));
        assert_eq!((wakes(1, 1), wakes(3, 2)), (0, 0));
    }

    /// However late one step was, the next is due at its own time after the first.
    #[test]
    fn a_late_step_does_not_move_the_next() {
        let schedule = Schedule::new(Timing::Recorded, 100, 1, 2);
        let first = schedule.due_ns(0).unwrap();
        sleep(Duration::from_millis(5));
        assert_eq!(schedule.due_ns(1_000), Some(first + 1_000));
        assert_eq!(schedule.due_ns(50_000_000), Some(first + 50_000_000));
    }
}
