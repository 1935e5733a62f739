//! The self-test of attribution in a guest: from empty disks to the verdict, verification.json in
//! the output directory.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::stand::{Stand, insert, insert_raw_nand};
use crate::device::disk::Disk;
use crate::device::layers;
use crate::errors::WrongUse;
use crate::raw_nand::ubi;
use crate::record::{Completion, SelfTest, Stack};
use crate::tracer::Tracer;
use crate::verify;
use crate::verify::disk_image::{self, Blank};

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
    let Ground { stand, traced, first_sector } = Ground::new(test, flash_module)?;
    let (mounted, mtd) = (stand.make(&mut |_| ())?, Path::new(ubi::MTD));
    let mut verdict = match stand.raw_nand() {
        Some(nand) => verify::run_on_raw_nand(mounted, nand, mtd, tracer)?,
        None => verify::run(mounted, &traced, tracer)?,
    };
    // As the filesystem counts, whose tools are asked.
    verdict.writers.iter_mut().for_each(|writer| writer.begin_bytes -= first_sector * 512);
    if test.disk_image {
        let (contents, blank) = match stand.raw_nand() {
            Some(_) => (mtd, Blank::Ones),
            None => (stand.device.as_path(), Blank::Zeroes),
        };
        disk_image::write(contents, &output.join("disk.img"), blank)?;
    }
    let path = output.join("verification.json");
    let json = serde_json::to_vec(&verdict)?;
    std::fs::write(&path, json).with_context(|| path.display().to_string())
}

/// The disk or NAND that the filesystem is made on.
struct Ground<'a> {
    stand: Stand<'a>,
    /// The disks, or what is made of them; that of the journal last.
    traced: Vec<PathBuf>,
    /// The sector of the first disk at which the filesystem begins.
    first_sector: i64,
}

impl<'a> Ground<'a> {
    fn new(test: &'a SelfTest, flash_module: &Path) -> anyhow::Result<Self> {
        if test.filesystem.is_on_raw_nand() {
            return Self::on_raw_nand(test, flash_module);
        }
        let disks = disks(test, flash_module)?;
        let (parts, journal) = disks.split_at(test.stack.map_or(1, Stack::disks));
        let names: Vec<String> = parts.iter().map(|disk| disk.name().to_owned()).collect();
        let first = match test.stack {
            Some(stack) => stack.build(&names)?,
            None => parts[0].node().to_owned(),
        };
        let (device, first_sector) = match test.partition {
            true => layers::make_partition(&parts[0])?,
            false => (first.clone(), 0),
        };
        let journal = journal.first().map(|disk| disk.node().to_owned());
        let traced = [first].into_iter().chain(journal.clone()).collect();
        Ok(Self { stand: stand(test, disks, device, journal), traced, first_sector })
    }

    fn on_raw_nand(test: &'a SelfTest, flash_module: &Path) -> anyhow::Result<Self> {
        if test.stack.is_some() || test.partition || test.external_journal || test.disk.is_some() {
            let message = "the self-test: ubifs is on raw NAND, not on disks";
            return Err(WrongUse(message.to_owned()).into());
        }
        let nand = insert_raw_nand(flash_module, test.device_model.as_ref())?;
        let stand = stand(test, vec![nand], ubi::VOLUME.into(), None);
        Ok(Self { stand, traced: Vec::new(), first_sector: 0 })
    }
}

fn stand(
    test: &SelfTest,
    disks: Vec<Disk>,
    device: PathBuf,
    journal: Option<PathBuf>,
) -> Stand<'_> {
    let (mkfs_options, mount_options) = (&test.mkfs_options, &test.mount_options);
    let (filesystem, allocators) = (test.filesystem, None);
    Stand { disks, device, journal, filesystem, mkfs_options, mount_options, allocators }
}

/// The disk that the guest has, or modelled ones: those of the filesystem, then the journal's.
fn disks(test: &SelfTest, flash_module: &Path) -> anyhow::Result<Vec<Disk>> {
    let count = test.stack.map_or(1, Stack::disks) + usize::from(test.external_journal);
    match (&test.disk, &test.device_model) {
        (Some(name), None) if count == 1 => {
            let disk = Disk::find(name)?;
            // An SD card reads as ones where it was erased.
            if name.starts_with("mmcblk") {
                disk.forbid_discards()?;
            }
            Ok(vec![disk])
        }
        (None, Some(model)) if !test.partition || test.stack.is_none() => {
            insert(flash_module, &vec![model; count], Completion::Direct)
        }
        _ => {
            let message = "the self-test: one of disk and device_model; a disk, or what has a \
                           partition, is one";
            Err(WrongUse(message.to_owned()).into())
        }
    }
}
