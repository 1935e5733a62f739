//! The self-test of attribution. Traces known writes until the end of the unmount, and compares the
//! tables with what lies on the device afterwards. Every sector written carries its own file and
//! offset, so the device itself contradicts a wrong answer.
//!
//! stamp -> workload (writes, and logs the writes) -> the tracer's tables -> check;
//! writers -> who wrote each sector last, for the filesystem's own tools

mod beside;
mod check;
pub mod disk_image;
mod log;
mod sector_versions;
mod sqlite;
mod stamp;
mod workload;
mod writers;

use std::path::PathBuf;

use crate::device::number;
use crate::filesystem::mount::{Mounted, drop_caches};
use crate::tracer::Tracer;

pub use check::Verdict;

/// Traces the known writes on a mounted filesystem, unmounts it, and judges what the tracer said.
/// `nodes` are the disks it is on, that of its journal last.
///
/// # Errors
/// If the writes or the tracing fail; a wrong attribution is none, but in the verdict.
pub fn run(mounted: Mounted, nodes: &[PathBuf], tracer: &mut Tracer) -> anyhow::Result<Verdict> {
    let disks = nodes.iter().map(|node| number::of_path(node)).collect::<Result<Vec<u32>, _>>()?;
    mounted.sync()?;
    tracer.start(&disks)?;
    let mut log = workload::run(mounted.directory(), &mut || Ok(tracer.digest().map(|_| ())?))?;
    // A second sync finds what the first made dirty (checkpoints).
    mounted.sync()?;
    mounted.sync()?;
    log.close();
    mounted.unmount()?;
    tracer.rest()?;
    let capture = tracer.finish()?;
    drop_caches()?; // what is read from now on comes from the device
    check::check(&capture, &log, nodes)
}
