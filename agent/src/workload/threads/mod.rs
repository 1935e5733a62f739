//! Runs a workload's threads: takes one worker or several, how much they shall do, and who watches;
//! gives what each thread noted.
//!
//! task -> crew (one thread or several); noted_phases: an observer for tests
//! turns: the order that threads keep

mod crew;
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
