//! One thread's task, run until a part is over, a checkpoint is due that others wait for, or it
//! shall stop; what it did is noted in a ledger.

use super::plan::{Length, Plan};
use super::task::Task;
use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::ledger::{Done, Ledger};

/// The two parts that transactions run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    WarmUp,
    Measured,
}

/// One thread's task, and how far it is.
pub struct Post<T> {
    pub task: T,
    pub ledger: Ledger,
    /// Whether it makes its checkpoints where they come due, while other threads go on.
    pub has_others: bool,
    plan: Plan,
    part: Part,
    remaining: u64,
    /// Whether a transaction of this part has run.
    begun: bool,
}

impl<T: Task> Post<T> {
    /// Of the calling thread, with its share of the plan.
    pub fn new(task: T, plan: Plan) -> Self {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().into();
        let ledger = Ledger::with_room(tid, plan.count().unwrap_or(0));
        let (part, remaining) = (Part::WarmUp, plan.warmup);
        Self { task, ledger, has_others: false, plan, part, remaining, begun: false }
    }

    fn begin(&mut self, part: Part) {
        if self.part == part {
            return;
        }
        self.part = part;
        self.ledger.warmup = self.ledger.entries.len();
        self.begun = false;
        self.remaining = match self.plan.measured {
            Length::Count(count) => count,
            Length::Time(_) => u64::MAX,
        };
    }

    /// Runs transactions of a part until they are done, the deadline is past, a checkpoint is due
    /// for which the phase ends, or it shall stop. Says whether the part is over.
    ///
    /// # Errors
    /// Of the transaction or checkpoint that failed.
    pub fn run(
        &mut self,
        part: Part,
        deadline_ns: i64,
        shall_stop: impl Fn() -> bool,
    ) -> Result<bool, WorkloadError> {
        self.begin(part);
        self.task.go_on();
        let mut last_ns = now_ns();
        while self.remaining > 0 {
            if std::mem::replace(&mut self.begun, true) {
                self.task.rest();
            }
            if !self.task.wait_until_due(&shall_stop) {
                break;
            }
            let done = match self.task.perform(last_ns) {
                Ok(done) => done,
                Err(error) => {
                    self.ledger.entries.push(Done::unreturned(last_ns));
                    return Err(error);
                }
            };
            last_ns = done.return_ns;
            self.ledger.entries.push(done);
            self.ledger.entries.extend(self.task.take_autocheckpoint());
            if last_ns >= deadline_ns {
                self.remaining = 0;
            } else if !self.task.is_within() {
                self.remaining -= 1;
            }
            if self.task.is_checkpoint_due(false) {
                if !self.has_others {
                    break;
                }
                self.checkpoint(false)?;
            }
            if shall_stop() {
                break;
            }
        }
        if self.remaining > 0 {
            self.task.stop();
        }
        Ok(self.remaining == 0)
    }

    /// Makes the checkpoint that is due, and notes it.
    ///
    /// # Errors
    /// Of the checkpoint.
    pub fn checkpoint(&mut self, at_end: bool) -> Result<(), WorkloadError> {
        self.ledger.entries.extend(self.task.checkpoint(at_end)?);
        if self.part == Part::WarmUp {
            self.ledger.warmup = self.ledger.entries.len();
        }
        Ok(())
    }
}
