//! The course of a run, the same in the lab and on this machine: the background load goes on, the
//! workload runs, and all that it wrote is written back.

use std::path::Path;

use super::background::left::RemainsOfBoth;
use super::background::load::BackgroundLoad;
use super::kind::{ClosedWorkload, Workload};
use super::threads::observer::Observer;
use crate::record::Background;

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
) -> anyhow::Result<ClosedWorkload> {
    let background = BackgroundLoad::start(background, directory)?;
    workload.run(observer)?;
    let background = background.map(BackgroundLoad::stop).transpose()?;
    observer.enter("settle")?;
    let mut closed = workload.close()?;
    sync()?;
    observer.leave()?;
    let Some((did, background)) = background else { return Ok(closed) };
    closed.manifest.push(("background", did));
    let workload = closed.remains;
    Ok(ClosedWorkload { remains: Box::new(RemainsOfBoth { workload, background }), ..closed })
}
