//! The self-test of attribution: writes that are known to the byte, traced, and compared with what
//! lies on the device afterwards. Every sector written carries which file and offset it is of, so
//! that the device itself contradicts a wrong answer.
//!
//! stamp -> workload (writes, and keeps the log of them) -> the tracer's tables -> check

mod check;
mod log;
mod sqlite;
mod stamp;
mod workload;

use std::path::Path;

use anyhow::Context;

use crate::block::Tracer;

pub use check::Verdict;

/// Traces the known writes on a mounted filesystem, and judges what the tracer said of them.
/// `node` is the block device that the filesystem is on, `disk` its number.
///
/// # Errors
/// If the writes or the tracing fail; a wrong attribution is none, but in the verdict.
pub fn run(
    directory: &Path,
    node: &Path,
    disk: u32,
    tracer: &mut Tracer,
) -> anyhow::Result<Verdict> {
    sync(directory)?;
    tracer.start(&[disk])?;
    let log = workload::run(directory, &mut || Ok(tracer.digest().map(|_| ())?))?;
    sync(directory)?;
    tracer.rest()?;
    let capture = tracer.finish()?;
    drop_caches()?;
    check::check(&capture, &log, directory, node)
}

/// syncfs(2) of the filesystem, and until it is really done: a second one finds what the first
/// made dirty (checkpoints).
fn sync(directory: &Path) -> anyhow::Result<()> {
    let folder = std::fs::File::open(directory).context("opening the filesystem")?;
    for _ in 0..2 {
        rustix::fs::syncfs(&folder).context("syncfs")?;
    }
    Ok(())
}

/// What is read from now on comes from the device (Documentation/admin-guide/sysctl/vm.rst).
fn drop_caches() -> anyhow::Result<()> {
    let control = "/proc/sys/vm/drop_caches";
    std::fs::write(control, "3").context(control)
}
