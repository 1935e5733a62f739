//! The course of a run, the same in the lab and on this machine: the background load goes on, the
//! workload runs, and all that it wrote is written back.

use std::path::Path;

use super::background::Background;
use super::{Finished, Observer, Workload};
use crate::record;

/// Runs a prepared workload in `directory` under the eyes of `observer`, with its background load,
/// until `sync` has written everything back, which is the phase `settle`.
///
/// # Errors
/// If a step fails.
pub fn run(
    mut workload: Workload,
    background: record::Background,
    directory: &Path,
    observer: &mut impl Observer,
    sync: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<Finished> {
    let background = Background::start(background, directory)?;
    workload.run(observer)?;
    let background = background.map(Background::stop).transpose()?;
    observer.enter("settle")?;
    let mut finished = workload.close()?;
    sync()?;
    observer.leave()?;
    finished.manifest.extend(background.map(|did| ("background", did)));
    Ok(finished)
}
