//! What file workloads leave: each thread its own files, which are checked thread by thread.

use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Progress, Survival};

/// What a power cut took of one thread's files.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Records and names that are not as the last operation that had returned left them.
    pub lost: u64,
    /// Changes of names that are there by half.
    pub torn: u64,
}

/// The files of one thread.
pub trait FilesOfThread {
    /// Checks that they are as the operations must have left them.
    ///
    /// # Errors
    /// If they cannot be read, or are not.
    fn check(&self) -> Result<(), WorkloadError>;

    /// What is there after a power cut, at which the thread had come so far.
    ///
    /// # Errors
    /// If it cannot be read, or is what no operation left there.
    fn survived(&self, progress: Progress) -> Result<Damage, WorkloadError>;
}

/// The files of all threads.
pub struct FilesLeft(pub Vec<Box<dyn FilesOfThread>>);

impl Remains for FilesLeft {
    fn check(&self) -> Result<(), WorkloadError> {
        self.0.iter().try_for_each(|files| files.check())
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let mut all = Damage::default();
        for (thread, files) in (0..).zip(&self.0) {
            let Damage { lost, torn } = files.survived(cut.progress_of_thread(thread))?;
            all = Damage { lost: all.lost + lost, torn: all.torn + torn };
        }
        Ok(survival(all))
    }
}

fn survival(Damage { lost, torn }: Damage) -> Survival {
    let (outcome, message) = match (lost, torn) {
        (_, 1..) => (CutOutcome::Torn, format!("{torn} names are there beside those they replace")),
        (1.., 0) => (CutOutcome::Lost, String::new()),
        (0, 0) => (CutOutcome::Kept, String::new()),
    };
    Survival { outcome, found: Vec::new(), lost, message }
}

/// The name of what a thread has alone: the first thread's is the plain one.
pub fn own_name(name: &str, thread: u64) -> String {
    if thread == 0 { name.into() } else { format!("{name}-{thread}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_counted() {
        let found = survival(Damage { lost: 2, torn: 0 });
        assert_eq!((found.outcome, found.lost), (CutOutcome::Lost, 2));
        assert_eq!(survival(Damage { lost: 2, torn: 1 }).outcome, CutOutcome::Torn);
        assert_eq!(survival(Damage::default()).outcome, CutOutcome::Kept);
    }
}
