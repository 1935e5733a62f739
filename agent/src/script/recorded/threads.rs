//! What a recording says of its threads: their processes and creators, which call made them, and
//! the umask that each has at a moment.

use std::collections::HashMap;

use crate::tables::recording::RecordedThread;

/// Of a process that nobody has set it for (umask(2)).
const DEFAULT_UMASK: i64 = 0o22;

/// All threads, by their numbers in the recording.
pub struct RecordedThreads<'a> {
    rows: HashMap<i64, (u32, &'a RecordedThread)>,
    made_by_call: HashMap<i64, Vec<i64>>,
    umasks: HashMap<i64, i64>,
    /// Of each process, those that began since one of them ended it.
    begun: HashMap<i64, Vec<i64>>,
}

impl<'a> RecordedThreads<'a> {
    /// Of the rows; none of the threads has begun.
    pub fn new(threads: &'a [RecordedThread]) -> Self {
        let mut made_by_call: HashMap<i64, Vec<i64>> = HashMap::new();
        for thread in threads {
            if let Some(call) = thread.created_by_call_id {
                made_by_call.entry(call).or_default().push(thread.thread_id);
            }
        }
        let umask = |it: &RecordedThread| (it.thread_id, it.umask.unwrap_or(DEFAULT_UMASK));
        Self {
            rows: (0..).zip(threads).map(|it| (it.1.thread_id, it)).collect(),
            made_by_call,
            umasks: threads.iter().map(umask).collect(),
            begun: HashMap::new(),
        }
    }

    pub fn has(&self, thread: i64) -> bool {
        self.rows.contains_key(&thread)
    }

    /// Which of the rows is a thread's.
    pub fn index(&self, thread: i64) -> u32 {
        self.rows[&thread].0
    }

    pub fn process(&self, thread: i64) -> i64 {
        self.rows[&thread].1.pid
    }

    pub fn creator(&self, thread: i64) -> Option<i64> {
        self.rows[&thread].1.creator_id
    }

    /// Whether a thread has its creator's table of descriptors, not a copy.
    pub fn shares_descriptors(&self, thread: i64) -> bool {
        self.rows[&thread].1.shares_descriptors
    }

    /// The threads that a call made; they are given once.
    pub fn take_made_by(&mut self, call: i64) -> Vec<i64> {
        self.made_by_call.remove(&call).unwrap_or_default()
    }

    pub fn umask(&self, thread: i64) -> i64 {
        self.umasks.get(&thread).copied().unwrap_or(DEFAULT_UMASK)
    }

    pub fn set_umask(&mut self, thread: i64, mode: Option<i64>) {
        self.umasks.insert(thread, mode.unwrap_or(DEFAULT_UMASK) & 0o777);
    }

    /// A thread begins.
    pub fn begin(&mut self, thread: i64) {
        let process = self.process(thread);
        self.begun.entry(process).or_default().push(thread);
    }

    /// A thread begins, with its creator's umask.
    pub fn begin_child(&mut self, child: i64, creator: i64) {
        self.umasks.insert(child, self.umask(creator));
        self.begin(child);
    }

    /// A process ends: gives the threads of it that have begun. Each is given once, so that all the
    /// ends of a recording together take no longer than its rows.
    pub fn end_process(&mut self, process: i64) -> Vec<i64> {
        let mut ended = self.begun.remove(&process).unwrap_or_default();
        ended.sort_unstable();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_with_those_that_began_and_once() {
        let thread = |thread_id, pid| RecordedThread { thread_id, pid, ..Default::default() };
        let rows = [thread(3, 1), thread(1, 1), thread(2, 2), thread(4, 1)];
        let mut threads = RecordedThreads::new(&rows);
        threads.set_umask(3, Some(0o1077));
        threads.begin(3);
        threads.begin(2);
        threads.begin_child(1, 3);
        assert_eq!((threads.umask(1), threads.umask(4)), (0o77, 0o22));
        assert_eq!(threads.end_process(1), [1, 3]);
        assert!(threads.end_process(1).is_empty());
        assert_eq!(threads.end_process(2), [2]);
        assert_eq!((threads.index(4), threads.has(5)), (3, false));
    }
}
