//! The course of a run, the same in the lab and on this machine: the background load goes on, the
//! workload runs, and all that it wrote is written back.

use std::path::Path;

use serde_json::Value;

use super::background::load::{BackgroundLeft, BackgroundLoad, RemainsOfBoth};
use super::error::WorkloadError;
use super::kind::{ClosedWorkload, Workload};
use super::threads::task::Observer;
use crate::record::Background;

/// A run that failed.
pub struct Stopped {
    pub error: anyhow::Error,
    /// Closes the workload, if that can still be done: it knows what it had done until then.
    pub close: Box<dyn FnOnce() -> Result<ClosedWorkload, WorkloadError>>,
}

impl From<Stopped> for anyhow::Error {
    fn from(stopped: Stopped) -> Self {
        stopped.error
    }
}

/// Runs a prepared workload in `directory` under the eyes of `observer`, with its background load,
/// until `sync` has written everything back, which is the phase `settle`.
///
/// # Errors
/// If a step fails.
pub fn run(
    mut workload: Box<dyn Workload>,
    background: Background,
    directory: &Path,
    observer: &mut dyn Observer,
    sync: impl FnOnce() -> anyhow::Result<()>,
) -> Result<ClosedWorkload, Stopped> {
    let background = match perform(&mut *workload, background, directory, observer) {
        Ok(background) => background,
        Err(error) => return Err(Stopped { error, close: Box::new(move || workload.close()) }),
    };
    let mut closed = match workload.close() {
        Ok(closed) => closed,
        Err(error) => {
            let none = || Err(WorkloadError::refused("it could not be closed".to_owned()));
            return Err(Stopped { error: error.into(), close: Box::new(none) });
        }
    };
    if let Err(error) = sync().and_then(|()| observer.leave()) {
        return Err(Stopped { error, close: Box::new(move || Ok(closed)) });
    }
    let Some((did, background)) = background else { return Ok(closed) };
    closed.manifest.push(("background", did));
    let workload = closed.remains;
    Ok(ClosedWorkload { remains: Box::new(RemainsOfBoth { workload, background }), ..closed })
}

/// Runs the workload until it is to be closed; gives what the background load did, and left.
fn perform(
    workload: &mut dyn Workload,
    background: Background,
    directory: &Path,
    observer: &mut dyn Observer,
) -> anyhow::Result<Option<(Value, BackgroundLeft)>> {
    let background = BackgroundLoad::start(background, directory)?;
    workload.run(observer)?;
    let background = background.map(BackgroundLoad::stop).transpose()?;
    observer.enter("settle")?;
    Ok(background)
}
