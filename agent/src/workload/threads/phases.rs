//! Takes the threads of a workload through its phases, warm-up, measured part and checkpoints, and
//! notifies the observer of each.

use std::time::Duration;

use super::observer::Observer;
use super::plan::{Length, Plan};
use super::post::{Part, Post};
use super::task::Task;
use crate::tables::timeline::now_ns;

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
