//! `joj-agent verify --device DEVICE --filesystem NAME --directory MOUNT-POINT`: the self-test of
//! attribution. Makes, mounts and unmounts the filesystem; prints the verdict as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::filesystem::mount::MountedFilesystem;
use crate::filesystem::tools;
use crate::messages::print;
use crate::record::Filesystem;
use crate::tracer::Tracer;
use crate::verify;

/// The bytes that the known writes make are a few MiB.
const RING_BYTES: u32 = 32 << 20;

/// The command line of `verify`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Disk that the filesystem is made on: its contents are lost
    #[arg(long)]
    device: PathBuf,
    /// Type of the filesystem
    #[arg(long, value_parser = filesystem)]
    filesystem: Filesystem,
    /// Mount point
    #[arg(long)]
    directory: PathBuf,
    /// Further options for mkfs
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    mkfs_options: String,
    /// Mount options, as for mount(8) -o
    #[arg(long, default_value = "")]
    mount_options: String,
}

fn filesystem(word: &str) -> Result<Filesystem, String> {
    Filesystem::from_word(word).ok_or_else(Filesystem::words_on_block_devices)
}

/// Runs the self-test; a wrong attribution is in what it prints, not in the exit code.
///
/// # Errors
/// If the disk cannot be traced, or the writes fail.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { device, filesystem, directory, mkfs_options, mount_options } = arguments;
    tools::make(*filesystem, device, None, mkfs_options)?;
    let mut tracer = Tracer::load(RING_BYTES)?;
    let mounted = MountedFilesystem::new(*filesystem, device, None, directory, mount_options)?;
    // The module of the filesystem may have come with the mount.
    tracer.notice_modules()?;
    let verdict = verify::run(mounted, std::slice::from_ref(device), &mut tracer)?;
    print(serde_json::to_string(&verdict)?)?;
    Ok(ExitCode::SUCCESS)
}
