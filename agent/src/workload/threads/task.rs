//! What a thread of a workload is: a worker that owns the files, and the task that it makes of them
//! in its own thread.

use super::plan::Plan;
use crate::workload::error::WorkloadError;
use crate::workload::ledger::Done;

/// What a thread does again and again.
pub trait Task {
    /// Does the next transaction. `last_ns` is when the thread's last one returned: the time at
    /// which this one begins, where nothing worth mentioning lies between.
    ///
    /// # Errors
    /// If a step of it fails.
    fn perform(&mut self, last_ns: i64) -> Result<Done, WorkloadError>;

    /// Whether more of what it did last is to come, which counts as one: a script's transaction
    /// that SQLite ended before the script does goes on as others.
    fn is_within(&self) -> bool {
        false
    }

    /// Idle time before each transaction of a phase but the first.
    fn rest(&self) {}

    /// Waits until the next transaction may begin, where it has a time of its own or other threads'
    /// come before it. False where `shall_stop` said so first: it stays the next one.
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        let _ = shall_stop;
        true
    }

    /// This thread begins, or goes on after it stopped.
    fn go_on(&mut self) {}

    /// This thread stops, because it shall: those that wait for it look whether they shall too.
    fn stop(&self) {}

    /// The checkpoint that SQLite made inside the operation just done, if any; given once.
    fn take_autocheckpoint(&mut self) -> Option<Done> {
        None
    }

    /// Whether a checkpoint is due: at the end any frame left is a debt of the transactions.
    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        let _ = at_end;
        false
    }

    /// Makes the checkpoint that is due.
    ///
    /// # Errors
    /// If it fails, or is not whole.
    fn checkpoint(&mut self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        let _ = at_end;
        Ok(None)
    }
}

impl<T: Task> Task for &mut T {
    #[inline]
    fn perform(&mut self, last_ns: i64) -> Result<Done, WorkloadError> {
        (**self).perform(last_ns)
    }
    fn is_within(&self) -> bool {
        (**self).is_within()
    }
    fn rest(&self) {
        (**self).rest();
    }
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        (**self).wait_until_due(shall_stop)
    }
    fn go_on(&mut self) {
        (**self).go_on();
    }
    fn stop(&self) {
        (**self).stop();
    }
    fn take_autocheckpoint(&mut self) -> Option<Done> {
        (**self).take_autocheckpoint()
    }
    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        (**self).is_checkpoint_due(at_end)
    }
    fn checkpoint(&mut self, at_end: bool) -> Result<Option<Done>, WorkloadError> {
        (**self).checkpoint(at_end)
    }
}

/// What a thread owns; its task is made in the thread itself.
pub trait Worker: Send {
    type Task<'a>: Task
    where
        Self: 'a;

    /// Gets ready to run.
    ///
    /// # Errors
    /// If a step fails.
    fn start(&mut self) -> Result<Self::Task<'_>, WorkloadError>;

    /// What it has to do: an even share, unless it came with work of its own.
    fn plan(&self, plan: Plan, thread: u64, threads: u64) -> Plan {
        plan.share(thread, threads)
    }
}
