//! The self-test of attribution. Traces known writes until the end of the unmount, and compares the
//! tables with what lies on the device afterwards. Every sector written carries its own file and
//! offset, so the device itself contradicts a wrong answer.
//!
//! sectors -> workload, asynchronous, throttled, side_writes, mounts, device_node (write,
//! and log the writes) -> the tracer's tables -> check, check_nand, askers;
//! writers -> who wrote each sector last, for the filesystem's own tools

mod askers;
mod asynchronous;
mod check;
mod check_nand;
mod device_node;
pub mod disk_image;
mod log;
mod mounts;
mod sectors;
mod side_writes;
mod throttled;
mod workload;
mod writers;

use std::path::{Path, PathBuf};

use log::Log;

use crate::device::disk::Disk;
use crate::device::sysfs;
use crate::filesystem::mount::{MountedFilesystem, drop_caches};
use crate::raw_nand::follower::NandWatch;
use crate::raw_nand::ubi;
use crate::tracer::Tracer;

pub use check::Verdict;

/// Traces the known writes on a mounted filesystem, unmounts it, and judges what the tracer said.
/// `nodes` are the disks it is on, that of its journal last.
///
/// # Errors
/// If the writes or the tracing fail; a wrong attribution is none, but in the verdict.
pub fn run(
    mounted: MountedFilesystem,
    nodes: &[PathBuf],
    tracer: &mut Tracer,
) -> anyhow::Result<Verdict> {
    let disks =
        nodes.iter().map(|node| sysfs::number_of_node(node)).collect::<Result<Vec<u32>, _>>()?;
    mounted.sync()?;
    tracer.start(&disks)?;
    let log = write_known(mounted, &mut || Ok(tracer.digest(usize::MAX).map(|_| ())?))?;
    tracer.rest()?;
    let capture = tracer.finish()?;
    drop_caches()?; // what is read from now on comes from the device
    check::check(&capture, &log, nodes)
}

/// As `run`, of a filesystem on raw NAND, which MTD has as `node`.
///
/// # Errors
/// As `run`.
pub fn run_on_raw_nand(
    mounted: MountedFilesystem,
    nand: &Disk,
    node: &Path,
    tracer: &mut Tracer,
) -> anyhow::Result<Verdict> {
    mounted.sync()?;
    ubi::wait_until_quiet(nand)?;
    let mut watch = NandWatch::new(nand);
    watch.begin()?;
    tracer.start_raw_nand(nand.name(), mounted.number()?)?;
    let log = write_known(mounted, &mut || {
        tracer.drain();
        Ok(())
    })?;
    ubi::wait_until_quiet(nand)?;
    tracer.stop();
    watch.collect()?;
    tracer.add_operations(watch.finish());
    let capture = tracer.finish()?;
    check_nand::check(&capture, &log, node, ubi::block_bytes(node)?)
}

/// Does the known writes, and unmounts.
fn write_known(
    mounted: MountedFilesystem,
    pause: &mut dyn FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Log> {
    let mut log = workload::run(mounted.directory(), pause)?;
    // A second sync finds what the first made dirty (checkpoints).
    mounted.sync()?;
    mounted.sync()?;
    log.close();
    mounted.unmount()?;
    Ok(log)
}
