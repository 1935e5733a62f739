//! `joj-agent trace --device DEVICE -- COMMAND`: runs a command, and tells what the disk was sent
//! meanwhile and on whose behalf. Prints a table, or with --json everything that was recorded.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::block::{Capture, Tracer};
use crate::device::number;

/// The command line of `trace`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Disk to trace, such as /dev/sda: the whole disk, not a partition
    #[arg(long)]
    device: PathBuf,
    /// Size of the ring buffer in MiB
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ring_mib: u32,
    /// Print requests, page runs and files as JSON
    #[arg(long)]
    json: bool,
    /// Command to run
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command under the tracer and prints what was seen.
///
/// # Errors
/// If the disk cannot be traced, or the command cannot be run or fails.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let disk = device_number(&arguments.device)?;
    let mut tracer = Tracer::load((arguments.ring_mib << 20).next_power_of_two())?;
    tracer.start(disk)?;
    let mut child = Command::new(&arguments.command[0])
        .args(&arguments.command[1..])
        .spawn()
        .with_context(|| format!("cannot run {}", arguments.command[0]))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if tracer.is_half_full() {
            tracer.drain()?;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let capture = tracer.finish()?;
    if arguments.json {
        println!("{}", to_json(&capture));
    } else {
        print_table(&capture);
    }
    ensure!(status.success(), "the command failed: {status}");
    Ok(())
}

/// The kernel's number of a whole disk.
fn device_number(path: &Path) -> anyhow::Result<u32> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    ensure!(metadata.file_type().is_block_device(), "{}: no block device", path.display());
    let device = number::of_node(metadata.rdev());
    if Path::new(&format!("/sys/dev/block/{}/partition", number::text(device))).exists() {
        bail!("{}: a partition; name the whole disk", path.display());
    }
    Ok(device)
}

/// Requests and bytes by what they are: operation, type, kind and file.
fn print_table(capture: &Capture) {
    let path = |id: Option<i64>| id.map_or("", |id| capture.files[id as usize].path.as_str());
    let mut lines: BTreeMap<[&str; 5], (u64, i64)> = BTreeMap::new();
    for request in capture.requests.iter().filter(|request| request.block_type == "flush") {
        lines.entry([&request.operation, "flush", "", "none", ""]).or_default().0 += 1;
    }
    for run in &capture.page_runs {
        let operation = capture.requests[run.request_id as usize].operation.as_str();
        let [kind, subtype] = [run.file_kind.as_str(), run.block_subtype.as_str()];
        let line = [operation, run.block_type.as_str(), subtype, kind, path(run.file_id)];
        let sum = lines.entry(line).or_default();
        sum.0 += 1;
        sum.1 += run.length_bytes;
    }
    println!("operation type         subtype           file_kind    runs        bytes  file");
    for ([operation, block_type, subtype, kind, path], (runs, bytes)) in lines {
        println!(
            "{operation:9} {block_type:12} {subtype:17} {kind:10} {runs:6} {bytes:12}  {path}"
        );
    }
    let gaps = &capture.gaps;
    println!(
        "{} requests; {} events lost, {} bytes and {} flushes unattributed, {} bios unissued, \
         {} requests incomplete, {} failed",
        capture.requests.len(),
        capture.lost_events,
        gaps.unattributed_bytes,
        gaps.unattributed_flushes,
        gaps.unissued_bios,
        gaps.incomplete_requests,
        gaps.failed_requests
    );
}

fn to_json(capture: &Capture) -> Value {
    let gaps = &capture.gaps;
    json!({
        "requests": capture.requests,
        "page_runs": capture.page_runs,
        "files": capture.files,
        "lost_events": capture.lost_events,
        "unattributed_bytes": gaps.unattributed_bytes,
        "unattributed_flushes": gaps.unattributed_flushes,
        "unissued_bios": gaps.unissued_bios,
        "incomplete_requests": gaps.incomplete_requests,
        "failed_requests": gaps.failed_requests,
    })
}
