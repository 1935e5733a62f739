//! What a background load left, beside what the workload did: joins the checks of both.

use super::sqlite::AppLeft;
use crate::record::Background;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, Survival};

/// What a background load left.
pub enum BackgroundLeft {
    /// A database whose every commit was synced.
    App(AppLeft),
    /// Files that nobody synced, or none.
    NothingPromised(Background),
}

/// What a workload and the load beside it left.
pub struct RemainsOfBoth {
    pub workload: Box<dyn Remains>,
    pub background: BackgroundLeft,
}

impl Remains for RemainsOfBoth {
    fn check(&self) -> Result<(), WorkloadError> {
        self.workload.check()?;
        match &self.background {
            BackgroundLeft::App(app) => app.check(),
            BackgroundLeft::NothingPromised(_) => Ok(()),
        }
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        self.workload.check_oracle()
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        let of_workload = self.workload.survived(cut)?;
        Ok(match &self.background {
            BackgroundLeft::App(app) => {
                [of_workload, app.survived(cut.at_ns)?].into_iter().collect()
            }
            BackgroundLeft::NothingPromised(_) => of_workload,
        })
    }

    fn promise_times_ns(&self) -> Vec<i64> {
        let mut times = self.workload.promise_times_ns();
        if let BackgroundLeft::App(app) = &self.background {
            times.extend(app.times.promises_ns());
        }
        times
    }

    fn unchecked(&self) -> Vec<String> {
        let mut unchecked = self.workload.unchecked();
        if let BackgroundLeft::NothingPromised(kind @ Background::Video) = self.background {
            unchecked.push(format!("the file of background {kind}: it is never synced"));
        }
        unchecked
    }
}
