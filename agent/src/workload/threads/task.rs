//! A thread's operations: the plan of how many there are, the task that performs one at a time, the
//! observer that is told of phases, and how threads tell one another what is to be done.

use std::time::Duration;

use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::ledger::{Ledger, LedgerEntry};

/// Describes what a thread does again and again.
pub trait Task: Send {
    /// Gets ready to run, in the thread itself.
    ///
    /// # Errors
    /// If a step fails.
    fn get_ready(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    /// Return what it has to do: an even share, unless it came with work of its own.
    fn plan(&self, plan: Plan, thread: u64, threads: u64) -> Plan {
        plan.share(thread, threads)
    }

    /// Does the next transaction. `last_ns` is when the thread's last one returned: the time at
    /// which this one begins, where nothing worth mentioning lies between.
    ///
    /// # Errors
    /// If a step of it fails.
    fn perform(&mut self, last_ns: i64) -> Result<LedgerEntry, WorkloadError>;

    /// Return whether more of what it did last is to come, which counts as one: a script's
    /// transaction that SQLite ended before the script does goes on as others.
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
    fn take_autocheckpoint(&mut self) -> Option<LedgerEntry> {
        None
    }

    /// Return whether a checkpoint is due: at the end any frame left is a debt of the transactions.
    fn is_checkpoint_due(&self, at_end: bool) -> bool {
        let _ = at_end;
        false
    }

    /// Makes the checkpoint that is due, and what else is between two transactions.
    ///
    /// # Errors
    /// If it fails, or is not whole.
    fn checkpoint(&mut self, at_end: bool) -> Result<Vec<LedgerEntry>, WorkloadError> {
        let _ = at_end;
        Ok(Vec::new())
    }
}

/// The amount that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// That many transactions, over all threads.
    Count(u64),
    /// Until the first transaction of each thread that returns after this time in the phase.
    Time(Duration),
}

impl Length {
    /// Read a case's fields, one of which is 0.
    fn new(transactions: u64, duration_ms: u64) -> Self {
        match duration_ms {
            0 => Self::Count(transactions),
            milliseconds => Self::Time(Duration::from_millis(milliseconds)),
        }
    }
}

/// The amount of work, over all threads.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub warmup: u64,
    pub measured: Length,
}

impl Plan {
    /// Read a case's fields; one of the last two is 0.
    pub fn new(warmup_transactions: u64, transactions: u64, duration_ms: u64) -> Self {
        Self { warmup: warmup_transactions, measured: Length::new(transactions, duration_ms) }
    }

    /// One thread's part of it: counts are shared out evenly, the first threads get the rest.
    pub fn share(self, thread: u64, threads: u64) -> Self {
        let share = |total: u64| total / threads + u64::from(thread < total % threads);
        let measured = match self.measured {
            Length::Count(count) => Length::Count(share(count)),
            time @ Length::Time(_) => time,
        };
        Self { warmup: share(self.warmup), measured }
    }

    /// Transactions in it, warm-up and measured; none where a time decides.
    pub fn count(self) -> Option<u64> {
        match self.measured {
            Length::Count(count) => Some(self.warmup + count),
            Length::Time(_) => None,
        }
    }
}

/// Told of every phase, and asked whether it needs a pause.
pub trait Observer {
    /// A phase begins now.
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()>;
    /// Name the part that is measured next.
    fn part(&mut self, _: &'static str) {}
    /// The phase ends now.
    fn leave(&mut self) -> anyhow::Result<()>;
    /// Return whether it wants every transaction to stop soon; asked after each, so it must be
    /// cheap.
    fn is_pause_due(&self) -> bool {
        false
    }
    /// No transaction is open and no phase: it may empty its buffers.
    fn pause(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Nobody watches.
impl Observer for () {
    fn enter(&mut self, _: &'static str) -> anyhow::Result<()> {
        Ok(())
    }
    fn leave(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The two parts that transactions run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    WarmUp,
    Measured,
}

/// One thread's task, and how far it is.
pub struct Post<'a, T> {
    pub task: &'a mut T,
    pub ledger: Ledger,
    /// Whether it makes its checkpoints where they come due, while other threads go on.
    pub has_others: bool,
    plan: Plan,
    part: Part,
    remaining: u64,
    /// Whether a transaction of this part has run.
    begun: bool,
}

impl<'a, T: Task> Post<'a, T> {
    /// Make the post of the calling thread, with its share of the plan.
    pub fn new(task: &'a mut T, plan: Plan) -> Self {
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
                    self.ledger.entries.push(LedgerEntry::without_return(last_ns));
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
