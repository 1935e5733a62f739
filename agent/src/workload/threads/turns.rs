//! The progress of the lanes of calls or statements that are replayed in their order, and whose
//! turn is next: a step waits for steps of other lanes. A thread that waits or sleeps stops when
//! all threads shall: the one waited for may have stopped already.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The steps of another lane that must be over: so many of its first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub lane: u32,
    pub steps: u32,
}

/// The progress of all lanes.
#[derive(Debug)]
pub struct Turns {
    /// Steps that each lane has made.
    made: Vec<AtomicU32>,
    /// Threads that wait for a step.
    waiting: AtomicU32,
    ended: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
    sleepers: Mutex<()>,
    alarm: Condvar,
}

impl Turns {
    pub fn new(lanes: usize) -> Self {
        Self {
            made: (0..lanes).map(|_| AtomicU32::new(0)).collect(),
            waiting: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            lock: Mutex::new(()),
            changed: Condvar::new(),
            sleepers: Mutex::new(()),
            alarm: Condvar::new(),
        }
    }

    /// Sleeps for a time, or until no turn will come any more. False where `shall_stop` cut it
    /// short; it is asked again after each `rouse`.
    pub fn sleep(&self, time: Duration, shall_stop: &dyn Fn() -> bool) -> bool {
        let guard = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = |(): &mut ()| !self.has_ended() && !shall_stop();
        // What a thread that panicked left behind is no value.
        let (guard, timeout) = self
            .alarm
            .wait_timeout_while(guard, time, is_on)
            .unwrap_or_else(PoisonError::into_inner);
        drop(guard);
        timeout.timed_out() || self.has_ended()
    }

    /// Waits for steps of other lanes, or until the replay ended early, and they will never be
    /// made. False where `shall_stop` said so before that; it is asked again after each `rouse`.
    pub fn wait(&self, waits: &[Wait], shall_stop: &dyn Fn() -> bool) -> bool {
        let is_made =
            |wait: &Wait| self.made[wait.lane as usize].load(Ordering::SeqCst) >= wait.steps;
        let is_due = || waits.iter().all(is_made) || self.has_ended();
        if !is_due() {
            let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_add(1, Ordering::SeqCst);
            while !is_due() && !shall_stop() {
                guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        is_due()
    }

    /// No turn will come any more, because a thread failed.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// All who wait or sleep look whether they shall stop.
    pub fn rouse(&self) {
        self.tell();
        let guard = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        self.alarm.notify_all();
        drop(guard);
    }

    /// A lane has made a step.
    pub fn pass(&self, lane: u32) {
        self.made[lane as usize].fetch_add(1, Ordering::SeqCst);
        self.tell();
    }

    /// No turn will come any more: all who wait or sleep go on.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.rouse();
    }

    /// Wake the threads that wait. Each has said so before it looked at what was changed here
    /// before.
    fn tell(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.changed.notify_all();
            drop(guard);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn wait(lane: u32, steps: u32) -> Wait {
        Wait { lane, steps }
    }

    #[test]
    fn turns_come_in_order_whoever_is_first() {
        let (turns, found) = (Turns::new(2), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for lane in [1, 0] {
                let (turns, found) = (&turns, &found);
                scope.spawn(move || {
                    for step in 0..100 {
                        // Lane 1's step comes after that of lane 0, and before its next one.
                        let before = [wait(1 - lane, step + lane)];
                        assert!(turns.wait(&before, &|| false));
                        found.lock().unwrap().push(step * 2 + lane);
                        turns.pass(lane);
                    }
                });
            }
        });
        assert_eq!(found.into_inner().unwrap(), (0..200).collect::<Vec<u32>>());
    }

    #[test]
    fn an_end_lets_all_go() {
        let turns = Turns::new(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| turns.wait(&[wait(1, 7)], &|| false));
            // Longer than any test may take.
            scope.spawn(|| turns.sleep(Duration::from_secs(100_000), &|| false));
            turns.end();
            assert!(waiting.join().unwrap() && turns.has_ended());
        });
    }

    #[test]
    fn a_thread_that_waits_for_a_stopped_one_stops_too() {
        let (turns, stop) = (Turns::new(1), AtomicBool::new(false));
        let shall_stop = || stop.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| turns.wait(&[wait(0, 7)], &shall_stop));
            let sleeping = scope.spawn(|| turns.sleep(Duration::from_secs(100_000), &shall_stop));
            stop.store(true, Ordering::Relaxed);
            turns.rouse();
            assert!(!waiting.join().unwrap() && !sleeping.join().unwrap());
        });
    }
}
