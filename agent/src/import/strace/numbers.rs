//! Whose a line is. strace writes no number of a thread while it follows a single one: as long as
//! there is no other, and again when all others have ended.

use std::collections::BTreeSet;

use super::form::child_of;
use super::line::{Said, TraceLine};

/// The threads that strace follows at a moment.
#[derive(Debug)]
pub struct ThreadNumbers {
    /// That of the thread whose lines have none at first.
    first: i64,
    live: BTreeSet<i64>,
    /// Those that a call has made, and of which nothing was seen yet.
    made: BTreeSet<i64>,
    /// Those that strace follows, and that have said nothing yet.
    silent: BTreeSet<i64>,
    /// Those that have called exit or exit_group; of their end strace may not tell (-qq).
    leaving: BTreeSet<i64>,
    /// Lines without a number, of one of several threads.
    pub doubtful: u64,
}

impl ThreadNumbers {
    pub fn new(first: i64) -> Self {
        let none = BTreeSet::new;
        let (live, made, silent, leaving) = (none(), none(), none(), none());
        ThreadNumbers { first, live, made, silent, leaving, doubtful: 0 }
    }

    /// The number of the thread of a line.
    pub fn of(&mut self, read: &TraceLine) -> i64 {
        match read.said {
            Said::Attached(tid, _) => {
                self.made.remove(&tid);
                self.live.insert(tid);
                self.silent.insert(tid);
                return tid;
            }
            Said::Detached(tid) => {
                self.live.remove(&tid);
                return tid;
            }
            _ if !read.is_event() => return read.tid.unwrap_or(self.first),
            _ => {}
        }
        let tid = read.tid.unwrap_or_else(|| self.only());
        self.made.remove(&tid);
        self.silent.remove(&tid);
        self.live.insert(tid);
        if let Some(child) = child_of(&read.said).filter(|it| !self.live.contains(it)) {
            self.made.insert(child);
        }
        match read.said {
            Said::Exited(_) | Said::Killed(_) => {
                self.live.remove(&tid);
                self.leaving.remove(&tid);
            }
            Said::Superseded(by) => drop(self.live.remove(&by)),
            Said::Call(text) | Said::Unfinished(text)
                if text.starts_with(b"exit_group(") || text.starts_with(b"exit(") =>
            {
                self.leaving.insert(tid);
            }
            _ => {}
        }
        tid
    }

    fn only(&mut self) -> i64 {
        if self.live.len() > 1 {
            let left = std::mem::take(&mut self.leaving);
            self.live.retain(|tid| !left.contains(tid));
        }
        // That a thread is followed is sometimes said before the end of the line that tells of it.
        let mut loud = self.live.difference(&self.silent);
        if let (Some(tid), None) = (loud.next(), loud.next()) {
            return *tid;
        }
        match (self.live.len(), self.live.first()) {
            (0, _) if self.made.len() == 1 => self.made.pop_first().unwrap_or(self.first),
            (0, _) => self.first,
            (1, Some(tid)) => *tid,
            _ => {
                self.doubtful += 1;
                self.first
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::read;
    use super::*;

    fn numbers(first: i64, text: &str) -> (Vec<i64>, u64) {
        let mut numbers = ThreadNumbers::new(first);
        let lines = text.lines().map(|line| read(line.as_bytes()).unwrap().unwrap());
        (lines.map(|line| numbers.of(&line)).collect(), numbers.doubtful)
    }

    #[test]
    fn a_line_without_a_number_is_of_the_only_thread() {
        let trace = "clone() = 8\n[pid 8] a() = 0\n[pid 7] b() = 0\n[pid 8] +++ exited with 0 +++\n\
                     c() = 0\n+++ exited with 0 +++";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8, 7, 7], 0));
        // The one that was there first may be the first to go.
        let trace = "clone() = 8\n[pid 8] a() = 0\n[pid 7] +++ killed by SIGKILL +++\nc() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8], 0));
        let trace = "clone() = 8\n+++ exited with 0 +++\nc() = 0\nd() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 7, 8, 8], 0));
        // With -qq no end is told.
        let trace = "clone() = 8\n[pid 8] exit_group(0) = ?\nc() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7], 0));
        let trace = "a() = 0\nstrace: Process 8 attached\nclone() = 8\n[pid 8] c() = 0";
        assert_eq!(numbers(7, trace), (vec![7, 8, 7, 8], 0));
        let trace = "strace: Process 5 attached\na() = 0\n[pid 6] b() = 0\nc() = 0";
        assert_eq!(numbers(5, trace), (vec![5, 5, 6, 5], 1));
    }
}
