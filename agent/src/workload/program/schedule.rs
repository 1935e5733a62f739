//! Another order of a program's threads for each number: at drawn instants each thread gets a drawn
//! class and priority, so that of two that can run another one goes first, and a thread is
//! preempted where it never was. As in Burckhardt et al., A Randomized Scheduler with Probabilistic
//! Guarantees of Finding Bugs (ASPLOS 2010), which changes priorities at drawn steps. One number
//! gives one order, since nothing but the guest's clock and the number decides.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;

use super::confined::UID;
use crate::workload::draw::{below, generator};

/// The class and priority that a thread may have (sched(7)): behind those of the kernel that serve
/// a filesystem, among them, or before them. Each is as likely.
const RANKS: [(i32, i32); 12] = [
    (libc::SCHED_IDLE, 0),
    (libc::SCHED_IDLE, 0),
    (libc::SCHED_IDLE, 0),
    (libc::SCHED_OTHER, 0),
    (libc::SCHED_OTHER, 0),
    (libc::SCHED_OTHER, 0),
    (libc::SCHED_FIFO, 1),
    (libc::SCHED_FIFO, 2),
    (libc::SCHED_FIFO, 3),
    (libc::SCHED_FIFO, 4),
    (libc::SCHED_FIFO, 5),
    (libc::SCHED_FIFO, 6),
];
/// Before all threads of the program: who reads what it acknowledges, and before that who draws.
pub const READER: (i32, i32) = (libc::SCHED_FIFO, 50);
const DRAWER: (i32, i32) = (libc::SCHED_FIFO, 51);

/// The shortest time between two draws, and the number of its doublings, the longest of which is
/// 102 ms.
const SHORTEST: Duration = Duration::from_micros(50);
const DOUBLINGS: u64 = 12;

/// Draws ranks in a thread of its own, until it is finished.
pub struct DrawnOrder {
    end: Sender<()>,
    thread: JoinHandle<io::Result<u64>>,
}

impl DrawnOrder {
    /// Begins to draw for all threads of the program's user.
    pub fn start(number: u64) -> Self {
        let (end, ended) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            set_rank(0, DRAWER)?;
            let mut random = generator(number, u64::from_le_bytes(*b"schedule"));
            let (mut pause, mut changes) = (SHORTEST, 0);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                for thread in threads_of_user(UID)? {
                    let rank = RANKS[below(&mut random, RANKS.len() as u64) as usize];
                    // A thread that has ended since has none.
                    changes += u64::from(set_rank(thread, rank).is_ok());
                }
                pause = SHORTEST * (1 << below(&mut random, DOUBLINGS));
            }
            Ok(changes)
        });
        Self { end, thread }
    }

    /// Ends the draws; gives the number of ranks that were set.
    ///
    /// # Errors
    /// If it could not draw.
    pub fn finish(self) -> anyhow::Result<u64> {
        drop(self.end);
        let changes = self.thread.join().map_err(|_| anyhow::anyhow!("the drawer ended"))?;
        changes.context("drawing the order of the program's threads")
    }
}

/// Gives a thread a class of the scheduler and a priority there; 0 is this thread.
///
/// # Errors
/// If there is no such thread.
pub fn set_rank(thread: i32, (class, priority): (i32, i32)) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: reads a struct of ours.
    match unsafe { libc::sched_setscheduler(thread, class, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The threads of a user's processes, by their numbers.
fn threads_of_user(user: u32) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc")? {
        let path = process?.path();
        // A process may end between the look at it and the look into it.
        if fs::metadata(&path).is_ok_and(|it| it.uid() == user) {
            let threads = fs::read_dir(path.join("task")).into_iter().flatten().flatten();
            let number = |name: &OsStr| name.to_str()?.parse::<i32>().ok();
            found.extend(threads.filter_map(|it| number(&it.file_name())));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_a_user_are_found() {
        // SAFETY: takes nothing.
        let (user, own) = unsafe { (libc::getuid(), libc::gettid()) };
        assert!(threads_of_user(user).unwrap().contains(&own));
        assert!(!threads_of_user(user + 1).unwrap().contains(&own));
    }
}
