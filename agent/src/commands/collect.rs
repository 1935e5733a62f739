//! `joj-agent collect`: collects what disks and SQLite do on this machine, for months, and sends
//! it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::collector::{CollectorSettings, PrivacyLevel, Server, collect};
use crate::device::disks::Disks;
use crate::errors::WrongUse;

/// The command line of `collect`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Send segments to this server, such as https://fleet.example [default: keep them]
    #[arg(long, requires = "token_file")]
    server: Option<String>,
    /// File with the token of this device, as `joj fleet enrol` prints it
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Trust these certificate authorities (PEM), and not those of the system
    #[arg(long, requires = "server")]
    ca_file: Option<PathBuf>,
    /// Folder for segments that wait to be sent; it is made where it is not there
    #[arg(long)]
    spool: PathBuf,
    /// Largest size of the spool in MiB
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..))]
    spool_mib: u64,
    /// The form in which names of files and processes leave this device
    #[arg(long, value_enum, default_value_t = PrivacyLevel::Names)]
    privacy: PrivacyLevel,
    /// Close a segment after this many seconds
    #[arg(long, default_value_t = 1800, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    segment_seconds: u64,
    /// Observe this block device, or the disk of this partition; repeat it for several [default:
    /// the disks of all mounted filesystems]
    #[arg(long, conflicts_with = "directory")]
    device: Vec<PathBuf>,
    /// Observe the disks of this directory's filesystem
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Size of the ring buffer in MiB, rounded up to a power of two
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring_mib: u32,
    /// Collect for this many seconds [default: until a signal ends it]
    #[arg(long)]
    duration: Option<u64>,
}

/// Collects until SIGINT, SIGTERM or the end of the time, and closes the last segment.
///
/// # Errors
/// If the disks cannot be traced, or the spool not be used.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let disks = match (arguments.device.as_slice(), &arguments.directory) {
        (devices @ [_, ..], _) => Disks::from_devices(devices)?,
        ([], Some(directory)) => Disks::from_directory(directory)?,
        ([], None) => Disks::from_machine()?,
    };
    if disks.numbers.is_empty() {
        return Err(WrongUse("no disk has a mounted filesystem; name a --device".into()).into());
    }
    let server = arguments.server.as_ref().zip(arguments.token_file.as_ref());
    let server = server.map(|(url, token_file)| Server {
        url: url.clone(),
        token_file: token_file.clone(),
        ca_file: arguments.ca_file.clone(),
    });
    collect(CollectorSettings {
        disks,
        spool: arguments.spool.clone(),
        server,
        privacy: arguments.privacy,
        segment_time: Duration::from_secs(arguments.segment_seconds),
        spool_bytes: arguments.spool_mib << 20,
        ring_bytes: (arguments.ring_mib << 20).next_power_of_two(),
        duration: arguments.duration.map(Duration::from_secs),
    })?;
    Ok(ExitCode::SUCCESS)
}
