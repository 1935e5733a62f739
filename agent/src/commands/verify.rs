//! `joj-agent verify --device DEVICE --directory MOUNT-POINT`: the self-test of attribution on a
//! filesystem that is mounted for it and may be written to. Prints the verdict as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;

use crate::block::Tracer;
use crate::device::disks::Disks;
use crate::errors::WrongUse;
use crate::verify;

/// The bytes that the known writes make are a few MiB.
const RING_BYTES: u32 = 32 << 20;

/// The command line of `verify`.
#[derive(clap::Args)]
pub struct Arguments {
    /// The whole disk that the filesystem is on
    #[arg(long)]
    device: PathBuf,
    /// Where it is mounted; its root, and empty
    #[arg(long)]
    directory: PathBuf,
}

/// Runs the self-test; a wrong attribution is in what it prints, not in the exit code.
///
/// # Errors
/// If the disk cannot be traced, or the writes fail.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { device, directory } = arguments;
    let disks = Disks::of_devices(std::slice::from_ref(device))?;
    let here = Disks::of_directory(directory)?;
    let &[disk] = disks.numbers.iter().copied().collect::<Vec<_>>().as_slice() else {
        return Err(WrongUse(format!("{}: not one disk", device.display())).into());
    };
    ensure!(here.numbers.contains(&disk), "{} is not on {}", directory.display(), device.display());
    let mut tracer = Tracer::load(RING_BYTES)?;
    let verdict = verify::run(directory, device, disk, &mut tracer)?;
    println!("{}", serde_json::to_string(&verdict)?);
    Ok(ExitCode::SUCCESS)
}
