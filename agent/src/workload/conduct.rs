//! Conducts a workload: takes one worker or several, how much they shall do, and who watches; runs
//! warm-up, measured part and checkpoints as phases, and gives what each thread noted.

use std::time::Duration;

use super::WorkloadError;
use super::crew;
use super::ledger::{Done, Ledger};
use crate::tables::clock::now_ns;

/// Who watches a workload: told of every phase, and asked whether it needs a pause.
pub trait Observer {
    /// A phase begins now.
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()>;
    /// The phase ends now.
    fn leave(&mut self) -> anyhow::Result<()>;
    /// Whether it wants every transaction to stop soon; asked after each, so it must be cheap.
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

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// That many transactions, over all threads.
    Count(u64),
    /// Until the first transaction of each thread that returns after this time in the phase.
    Time(Duration),
}

impl Length {
    /// Of a case's fields, of which the other is 0.
    pub fn new(transactions: u64, duration_ms: u64) -> Self {
        match duration_ms {
            0 => Self::Count(transactions),
            milliseconds => Self::Time(Duration::from_millis(milliseconds)),
        }
    }
}

/// How much there is to do, over all threads.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub warmup: u64,
    pub measured: Length,
}

impl Plan {
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

/// What a thread does again and again.
pub trait Task {
    /// Does the next transaction. `last_ns` is when the thread's last one returned: the time at
    /// which this one begins, where nothing worth mentioning lies between.
    ///
    /// # Errors
    /// If a step of it fails.
    fn perform(&mut self, last_ns: i64) -> Result<Done, WorkloadError>;

    /// Idle time before each transaction of a phase but the first.
    fn rest(&self) {}

    /// Waits until the next transaction may begin, where it has a time of its own or other threads'
    /// come before it. False where `shall_stop` said so first: it stays the next one.
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        let _ = shall_stop;
        true
    }

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
    fn rest(&self) {
        (**self).rest();
    }
    fn wait_until_due(&mut self, shall_stop: &dyn Fn() -> bool) -> bool {
        (**self).wait_until_due(shall_stop)
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
        Self { task, ledger, plan, part: Part::WarmUp, remaining: plan.warmup, begun: false }
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

    /// Runs transactions of a part until they are done, the deadline is past, a checkpoint is due,
    /// or it shall stop. Says whether the part is over.
    ///
    /// # Errors
    /// Of the transaction that failed.
    pub fn run(
        &mut self,
        part: Part,
        deadline_ns: i64,
        shall_stop: impl Fn() -> bool,
    ) -> Result<bool, WorkloadError> {
        self.begin(part);
        let mut last_ns = now_ns();
        while self.remaining > 0 {
            if std::mem::replace(&mut self.begun, true) {
                self.task.rest();
            }
            if !self.task.wait_until_due(&shall_stop) {
                break;
            }
            let done = self.task.perform(last_ns)?;
            last_ns = done.return_ns;
            self.ledger.entries.push(done);
            self.ledger.entries.extend(self.task.take_autocheckpoint());
            self.remaining = if last_ns < deadline_ns { self.remaining - 1 } else { 0 };
            if self.task.is_checkpoint_due(false) || shall_stop() {
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

/// Those who run the transactions, as the conductor sees them.
pub trait Team {
    /// Runs a part until it is over, a checkpoint is due or a pause; says whether it is over.
    fn run(
        &mut self,
        part: Part,
        deadline_ns: i64,
        is_pause_due: impl Fn() -> bool,
    ) -> anyhow::Result<bool>;
    fn is_checkpoint_due(&mut self, at_end: bool) -> anyhow::Result<bool>;
    fn checkpoint(&mut self, at_end: bool) -> anyhow::Result<()>;
}

impl<T: Task> Team for Post<T> {
    fn run(
        &mut self,
        part: Part,
        deadline_ns: i64,
        is_pause_due: impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        Ok(self.run(part, deadline_ns, is_pause_due)?)
    }
    fn is_checkpoint_due(&mut self, at_end: bool) -> anyhow::Result<bool> {
        Ok(self.task.is_checkpoint_due(at_end))
    }
    fn checkpoint(&mut self, at_end: bool) -> anyhow::Result<()> {
        Ok(self.checkpoint(at_end)?)
    }
}

/// Runs warm-up and measured transactions; leaves no phase open. A worker alone runs in the
/// calling thread, several in one each.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn run<W: Worker>(
    workers: &mut [W],
    plan: Plan,
    observer: &mut impl Observer,
) -> anyhow::Result<Vec<Ledger>> {
    if let [worker] = workers {
        let own = worker.plan(plan, 0, 1);
        let mut post = Post::new(worker.start()?, own);
        conduct(&mut post, plan, observer)?;
        return Ok(vec![post.ledger]);
    }
    crew::run(workers, plan, observer)
}

/// Takes a team through the phases.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn conduct(
    team: &mut impl Team,
    plan: Plan,
    observer: &mut impl Observer,
) -> anyhow::Result<()> {
    if plan.warmup > 0 {
        conduct_part(team, Part::WarmUp, None, observer)?;
    }
    match plan.measured {
        Length::Count(0) => {}
        Length::Count(_) => conduct_part(team, Part::Measured, None, observer)?,
        Length::Time(time) => conduct_part(team, Part::Measured, Some(time), observer)?,
    }
    // What is left in a WAL is a debt of the transactions.
    if team.is_checkpoint_due(true)? {
        observer.enter("checkpoint")?;
        team.checkpoint(true)?;
        observer.leave()?;
    }
    Ok(())
}

/// One part, in as many intervals of its phase as checkpoints and pauses make. `time` counts what
/// is in those intervals.
fn conduct_part(
    team: &mut impl Team,
    part: Part,
    time: Option<Duration>,
    observer: &mut impl Observer,
) -> anyhow::Result<()> {
    let phase = match part {
        Part::WarmUp => "warm-up",
        Part::Measured => "commit",
    };
    let mut left_ns = time.map_or(i64::MAX, |time| time.as_nanos().try_into().unwrap_or(i64::MAX));
    loop {
        observer.enter(phase)?;
        let begin_ns = now_ns();
        let deadline_ns = begin_ns.saturating_add(left_ns);
        let over = team.run(part, deadline_ns, || observer.is_pause_due())?;
        left_ns = left_ns.saturating_sub(now_ns() - begin_ns);
        observer.leave()?;
        if team.is_checkpoint_due(false)? {
            observer.enter("checkpoint")?;
            team.checkpoint(false)?;
            observer.leave()?;
        }
        if observer.is_pause_due() {
            observer.pause()?;
        }
        if over {
            return Ok(());
        }
    }
}
