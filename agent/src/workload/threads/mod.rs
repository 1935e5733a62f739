//! Runs a workload's threads: takes one worker or several, how much they shall do, and who watches;
//! gives what each thread noted.
//!
//! task -> crew (one thread or several); noted_phases: an observer for tests
//! turns: the order that threads keep

mod crew;
#[cfg(test)]
pub mod noted_phases;
pub mod task;
pub mod turns;

use super::ledger::Ledger;
use task::{Observer, Plan, Post, Worker};

/// Runs warm-up and measured transactions; leaves no phase open. A worker alone runs in the
/// calling thread, several in one each.
///
/// # Errors
/// If a transaction or the observer fails.
pub fn run<W: Worker>(
    workers: &mut [W],
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
pub fn run_noting<W: Worker>(
    workers: &mut [W],
    plan: Plan,
    observer: &mut dyn Observer,
    ledgers: &mut Vec<Ledger>,
) -> anyhow::Result<()> {
    if let [worker] = workers {
        let own = worker.plan(plan, 0, 1);
        let mut post = Post::new(worker.start()?, own);
        let result = crew::conduct(&mut post, plan, observer);
        *ledgers = vec![post.ledger];
        return result;
    }
    crew::run(workers, plan, observer, ledgers)
}
