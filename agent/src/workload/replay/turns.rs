//! The order of calls on the same file over all threads: each call has its turn, and waits for it.
//! Who waits or sleeps stops when all threads shall: the one waited for may have stopped already.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Whose turn it is, of each file.
#[derive(Debug)]
pub struct Turns {
    next: Vec<AtomicU32>,
    /// Threads that wait for a turn.
    waiting: AtomicU32,
    ended: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
    sleepers: Mutex<()>,
    alarm: Condvar,
}

impl Turns {
    pub fn new(files: usize) -> Self {
        Self {
            next: (0..files).map(|_| AtomicU32::new(0)).collect(),
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
        let held = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = |(): &mut ()| !self.has_ended() && !shall_stop();
        // What a thread that panicked left behind is no value.
        let (held, timeout) = self
            .alarm
            .wait_timeout_while(held, time, is_on)
            .unwrap_or_else(PoisonError::into_inner);
        drop(held);
        timeout.timed_out() || self.has_ended()
    }

    /// Waits for a turn on a file, or until the replay ended early, and it will never come. False
    /// where `shall_stop` said so before that; it is asked again after each `rouse`.
    pub fn wait(&self, file: usize, turn: u32, shall_stop: &dyn Fn() -> bool) -> bool {
        let is_due = || self.next[file].load(Ordering::SeqCst) == turn || self.has_ended();
        if !is_due() {
            let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_add(1, Ordering::SeqCst);
            while !is_due() && !shall_stop() {
                held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
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
        let held = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        self.alarm.notify_all();
        drop(held);
    }

    /// The turn is over: the next one may come.
    pub fn pass(&self, file: usize) {
        self.next[file].fetch_add(1, Ordering::SeqCst);
        self.tell();
    }

    /// No turn will come any more: all who wait or sleep go on.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.rouse();
    }

    /// Who waits has said so before looking at what was changed here before.
    fn tell(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.changed.notify_all();
            drop(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn turns_come_in_order_whoever_is_first() {
        let (turns, found) = (Turns::new(1), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for odd in [1, 0] {
                let (turns, found) = (&turns, &found);
                scope.spawn(move || {
                    for turn in (odd..200).step_by(2) {
                        assert!(turns.wait(0, turn, &|| false));
                        found.lock().unwrap().push(turn);
                        turns.pass(0);
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
            let waiting = scope.spawn(|| turns.wait(1, 7, &|| false));
            // Longer than any test may take.
            scope.spawn(|| turns.sleep(Duration::from_secs(100_000), &|| false));
            turns.end();
            assert!(waiting.join().unwrap() && turns.has_ended());
        });
    }

    #[test]
    fn who_waits_for_one_that_has_stopped_stops_too() {
        let (turns, stop) = (Turns::new(1), AtomicBool::new(false));
        let shall_stop = || stop.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| turns.wait(0, 7, &shall_stop));
            let sleeping = scope.spawn(|| turns.sleep(Duration::from_secs(100_000), &shall_stop));
            stop.store(true, Ordering::Relaxed);
            turns.rouse();
            assert!(!waiting.join().unwrap() && !sleeping.join().unwrap());
        });
    }
}
