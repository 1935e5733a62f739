//! Runs a workload's threads: takes one worker or several, how much they shall do, and who watches;
//! gives what each thread noted.
//!
//! task; turns: the order that threads keep; here: the crew of several, and an observer for tests

pub mod task;
pub mod turns;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::Context;
use task::{Length, Observer, Part, Plan, Post, Task};

use crate::tables::timeline::now_ns;
use crate::workload::error::WorkloadError;
use crate::workload::ledger::Ledger;

/// Runs warm-up and measured transactions; leaves no phase open. A worker alone runs in the
/// calling thread, several in one each.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn run<T: Task>(
    workers: &mut [T],
    plan: Plan,
    observer: &mut dyn Observer,
) -> anyhow::Result<Vec<Ledger>> {
    let mut ledgers = Vec::new();
    run_noting(workers, plan, observer, &mut ledgers)?;
    Ok(ledgers)
}

/// As `run`; after an error too, `ledgers` are what each thread noted until then.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn run_noting<T: Task>(
    workers: &mut [T],
    plan: Plan,
    observer: &mut dyn Observer,
    ledgers: &mut Vec<Ledger>,
) -> anyhow::Result<()> {
    if let [worker] = workers {
        let own = worker.plan(plan, 0, 1);
        worker.get_ready()?;
        let mut post = Post::new(worker, own);
        let result = conduct(&mut post, plan, observer);
        *ledgers = vec![post.ledger];
        return result;
    }
    run_crew(workers, plan, observer, ledgers)
}

// The threads that run a workload's operations, and the phases that they go through together.

/// The time between questions to the observer whether it needs a pause: the tracer's ring, half of
/// which is left then, takes far longer to fill.
const LOOK: Duration = Duration::from_millis(20);

/// Says what a thread is told to do.
#[derive(Debug, Clone, Copy)]
enum Order {
    Run(Part, i64),
    SayWhetherCheckpointIsDue(bool),
    Checkpoint(bool),
}

/// A thread's number, and its answer to an order: whether the part is over, or a checkpoint due.
type Report = (usize, Result<bool, WorkloadError>);

/// The threads, as the conducting one sees them.
struct Crew<'scope, 'stop> {
    threads: Vec<ScopedJoinHandle<'scope, Ledger>>,
    orders: Vec<Sender<Order>>,
    reports: Receiver<Report>,
    stop: &'stop AtomicBool,
}

/// Runs the workers through the phases; `ledgers` are what each noted, after an error too.
///
/// # Errors
/// If a transaction or the observer fails; of several failures that of the first thread.
fn run_crew<T: Task>(
    workers: &mut [T],
    plan: Plan,
    observer: &mut dyn Observer,
    ledgers: &mut Vec<Ledger>,
) -> anyhow::Result<()> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut crew = Crew::start(scope, workers, plan, &stop)?;
        let result = crew.gather(&|| false).and_then(|_| conduct(&mut crew, plan, observer));
        // Without a sender of orders the threads end.
        crew.orders.clear();
        let joined = crew.threads.into_iter().map(ScopedJoinHandle::join);
        *ledgers = joined
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| anyhow::anyhow!("a thread of the workload panicked"))?;
        result
    })
}

impl<'scope, 'stop: 'scope> Crew<'scope, 'stop> {
    fn start<'env, T: Task>(
        scope: &'scope Scope<'scope, 'env>,
        workers: &'env mut [T],
        plan: Plan,
        stop: &'stop AtomicBool,
    ) -> anyhow::Result<Self> {
        let count = workers.len() as u64;
        let (report, reports) = mpsc::channel();
        let mut crew = Self { threads: Vec::new(), orders: Vec::new(), reports, stop };
        for (number, worker) in workers.iter_mut().enumerate() {
            let (order, orders) = mpsc::channel();
            let (report, share) = (report.clone(), worker.plan(plan, number as u64, count));
            let serve =
                move || serve(worker, share, &orders, stop, &|it| report.send((number, it)));
            let thread = thread::Builder::new().spawn_scoped(scope, serve);
            crew.threads.push(thread.with_context(|| format!("starting thread {number}"))?);
            crew.orders.push(order);
        }
        Ok(crew)
    }

    /// Waits for every thread's report; says what each one said, in the threads' order.
    fn gather(&self, is_pause_due: &dyn Fn() -> bool) -> anyhow::Result<Vec<bool>> {
        self.gather_from(0..self.orders.len(), is_pause_due)
    }

    /// Waits for the reports of some threads.
    fn gather_from(
        &self,
        numbers: Range<usize>,
        is_pause_due: &dyn Fn() -> bool,
    ) -> anyhow::Result<Vec<bool>> {
        let mut found: BTreeMap<usize, Result<bool, WorkloadError>> = BTreeMap::new();
        while found.len() < numbers.len() {
            match self.reports.recv_timeout(LOOK) {
                Ok((number, report)) => drop(found.insert(number, report)),
                Err(RecvTimeoutError::Timeout) if is_pause_due() => {
                    self.stop.store(true, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let gone = |number: &usize| {
                        !found.contains_key(number) && self.threads[*number].is_finished()
                    };
                    let gone = numbers.clone().any(|number| gone(&number));
                    anyhow::ensure!(!gone, "a thread of the workload ended before its time");
                }
                Err(RecvTimeoutError::Disconnected) => {
                    anyhow::bail!("the threads of the workload ended before their time")
                }
            }
        }
        Ok(found.into_values().collect::<Result<Vec<_>, _>>()?)
    }

    fn tell_all(&self, order: Order) {
        for orders in &self.orders {
            // A thread that is gone cannot report either, which is noticed.
            let _ = orders.send(order);
        }
    }
}

impl Team for Crew<'_, '_> {
    fn run(
        &mut self,
        part: Part,
        deadline_ns: i64,
        is_pause_due: impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        self.stop.store(false, Ordering::Relaxed);
        self.tell_all(Order::Run(part, deadline_ns));
        let over = self.gather(&is_pause_due)?;
        Ok(over.into_iter().all(|over| over))
    }

    fn is_checkpoint_due(&mut self, at_end: bool) -> anyhow::Result<bool> {
        self.tell_all(Order::SayWhetherCheckpointIsDue(at_end));
        Ok(self.gather(&|| false)?.contains(&true))
    }

    /// One after the other, in the threads' order.
    fn checkpoint(&mut self, at_end: bool) -> anyhow::Result<()> {
        for (number, orders) in self.orders.iter().enumerate() {
            let _ = orders.send(Order::Checkpoint(at_end));
            self.gather_from(number..number + 1, &|| false)?;
        }
        Ok(())
    }
}

/// Return what a thread does all its life: gets ready, reports, and follows orders until there is
/// nobody to give any. Gives what it noted.
fn serve<T: Task, E>(
    worker: &mut T,
    plan: Plan,
    orders: &Receiver<Order>,
    stop: &AtomicBool,
    report: &dyn Fn(Result<bool, WorkloadError>) -> Result<(), E>,
) -> Ledger {
    if let Err(error) = worker.get_ready() {
        let _ = report(Err(error));
        return Ledger::default();
    }
    let mut post = Post::new(worker, plan);
    post.has_others = true;
    let _ = report(Ok(true));
    while let Ok(order) = orders.recv() {
        let result = match order {
            Order::Run(part, deadline_ns) => {
                let result = post.run(part, deadline_ns, || stop.load(Ordering::Relaxed));
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                result
            }
            Order::SayWhetherCheckpointIsDue(at_end) => Ok(post.task.is_checkpoint_due(at_end)),
            Order::Checkpoint(at_end) => post.checkpoint(at_end).map(|()| true),
        };
        if report(result).is_err() {
            break;
        }
    }
    post.ledger
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

impl<T: Task> Team for Post<'_, T> {
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

/// Takes a team through the phases.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn conduct(
    team: &mut impl Team,
    plan: Plan,
    observer: &mut dyn Observer,
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
    observer: &mut dyn Observer,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::ledger::LedgerEntry;
    use crate::workload::threads::noted_phases::NotedPhases;

    /// Has a checkpoint due at its end, in which it panics.
    struct Fails;

    impl Task for Fails {
        fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
            unreachable!("there is nothing to do")
        }

        fn is_checkpoint_due(&self, at_end: bool) -> bool {
            at_end
        }

        fn checkpoint(&mut self, _: bool) -> Result<Vec<LedgerEntry>, WorkloadError> {
            panic!("as a thread does that has a fault");
        }
    }

    /// One thread is in its transaction until the other has made the checkpoint that is due for it.
    struct Waits {
        told: Option<Receiver<()>>,
        tell: Option<Sender<()>>,
        is_due: bool,
    }

    impl Task for Waits {
        fn perform(&mut self, _: i64) -> Result<LedgerEntry, WorkloadError> {
            if let Some(told) = &self.told {
                // So long only where nobody makes it.
                told.recv_timeout(Duration::from_secs(60)).expect("the other made its checkpoint");
            }
            self.is_due = self.tell.is_some();
            Ok(LedgerEntry::begin("write", 0))
        }

        fn is_checkpoint_due(&self, _: bool) -> bool {
            self.is_due
        }

        fn checkpoint(&mut self, _: bool) -> Result<Vec<LedgerEntry>, WorkloadError> {
            self.is_due = false;
            self.tell.iter().for_each(|tell| tell.send(()).unwrap());
            Ok(vec![LedgerEntry::begin(crate::workload::ledger::CHECKPOINT, 0)])
        }
    }

    #[test]
    fn a_checkpoint_waits_for_no_other_thread() {
        let (tell, told) = mpsc::channel();
        let holder = Waits { told: Some(told), tell: None, is_due: false };
        let writer = Waits { told: None, tell: Some(tell), is_due: false };
        let mut ledgers = Vec::new();
        let mut phases = NotedPhases::default();
        run_crew(&mut [holder, writer], Plan::new(0, 2, 0), &mut phases, &mut ledgers).unwrap();
        assert_eq!(ledgers[1].entries.len(), 2);
        assert_eq!(phases.phases, ["commit"]);
    }

    #[test]
    fn a_thread_that_dies_in_its_checkpoint_is_not_waited_for() {
        let plan = Plan::new(0, 0, 0);
        let error =
            run_crew(&mut [Fails, Fails], plan, &mut NotedPhases::default(), &mut Vec::new());
        assert!(error.unwrap_err().to_string().contains("panicked"));
    }
}

#[cfg(test)]
pub mod noted_phases {
    // An observer for tests: notes the phases of a workload, and checks that each ends before the
    // next begins. It asks for as many pauses as it is told to, one after the other.
    use super::task::Observer;

    /// The phases that began, in order.
    #[derive(Default)]
    pub struct NotedPhases {
        pub phases: Vec<&'static str>,
        /// Pauses that it still asks for.
        pub pauses: usize,
        is_open: bool,
    }

    impl NotedPhases {
        /// Will ask for so many.
        pub fn with_pauses(pauses: usize) -> Self {
            Self { pauses, ..Self::default() }
        }
    }

    impl Observer for NotedPhases {
        fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
            assert!(!self.is_open, "{phase} begins in {:?}", self.phases.last());
            self.is_open = true;
            self.phases.push(phase);
            Ok(())
        }

        fn leave(&mut self) -> anyhow::Result<()> {
            assert!(self.is_open, "{:?} ends twice", self.phases.last());
            self.is_open = false;
            Ok(())
        }

        fn is_pause_due(&self) -> bool {
            self.pauses > 0
        }

        fn pause(&mut self) -> anyhow::Result<()> {
            assert!(!self.is_open, "a pause in {:?}", self.phases.last());
            self.pauses = self.pauses.checked_sub(1).expect("a pause is due");
            Ok(())
        }
    }
}
