//! The self-test of attribution in a guest: its record, and the way from an empty device to the
//! verdict, verification.json in the output directory.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::device::disk::Disk;
use crate::device::{flash_module, partition};
use crate::errors::WrongUse;
use crate::filesystem::{make, mount::Mounted};
use crate::record::{Completion, SelfTest, Stack};
use crate::tracer::Tracer;
use crate::verify;

/// Where the device is mounted.
const MOUNT_POINT: &str = "/mnt/flash";

/// Makes the device and the filesystem, and runs the self-test.
///
/// # Errors
/// If a step fails; a wrong attribution is none.
pub fn run(
    test: &SelfTest,
    flash_module: &Path,
    tracer: &mut Tracer,
    output: &Path,
) -> anyhow::Result<()> {
    let SelfTest { filesystem, mkfs_options, mount_options, stack, .. } = test;
    let disks = disks(test, flash_module)?;
    let (parts, journal) = disks.split_at(stack.map_or(1, Stack::disks));
    let names: Vec<String> = parts.iter().map(|disk| disk.name().to_owned()).collect();
    let mut nodes = vec![match stack {
        Some(stack) => stack.build(&names)?,
        None => parts[0].node().to_owned(),
    }];
    nodes.extend(journal.iter().map(|disk| disk.node().to_owned()));
    let (device, first_sector) = match test.partition {
        true => partition::make(&parts[0])?,
        false => (nodes[0].clone(), 0),
    };
    let journal = nodes.get(1).map(PathBuf::as_path);
    make::make(*filesystem, &device, journal, mkfs_options)?;
    let place = Path::new(MOUNT_POINT);
    let mounted = Mounted::new(*filesystem, &device, journal, place, mount_options)?;
    let mut verdict = verify::run(mounted, &nodes, tracer)?;
    // As the filesystem counts, whose tools are asked.
    verdict.writers.iter_mut().for_each(|writer| writer.sector -= first_sector);
    if test.disk_image {
        verify::disk_image::write(&device, &output.join("disk.img"))?;
    }
    let path = output.join("verification.json");
    let json = serde_json::to_vec(&verdict)?;
    std::fs::write(&path, json).with_context(|| path.display().to_string())
}

/// The disk that the guest has, or modelled ones: those of the filesystem, then the journal's.
fn disks(test: &SelfTest, flash_module: &Path) -> anyhow::Result<Vec<Disk>> {
    let disks = test.stack.map_or(1, Stack::disks) + usize::from(test.external_journal);
    match (&test.disk, &test.device_model) {
        (Some(name), None) if disks == 1 => {
            let disk = Disk::of_kernel(name)?;
            disk.forbid_discards()?;
            Ok(vec![disk])
        }
        (None, Some(model)) if !test.partition || test.stack.is_none() => {
            Ok(flash_module::insert(flash_module, &vec![model; disks], Completion::Direct.word())?)
        }
        _ => {
            let message = "the self-test: one of disk and device_model; a disk, or what has a \
                           partition, is one";
            Err(WrongUse(message.to_owned()).into())
        }
    }
}
