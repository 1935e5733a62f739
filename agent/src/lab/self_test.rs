//! The self-test of attribution in a guest: its record, and the way from an empty device to the
//! verdict, verification.json in the output directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::device::disk::Disk;
use crate::device::{flash_module, partition, stack::Stack};
use crate::errors::WrongUse;
use crate::filesystem::{Kind, make, mount::Mounted};
use crate::record::Completion;
use crate::tracer::Tracer;
use crate::verify;

/// Where the device is mounted.
const MOUNT_POINT: &str = "/mnt/flash";

/// What the lab asks for in place of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    verify: Target,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    filesystem: Kind,
    #[serde(default)]
    mkfs_options: String,
    #[serde(default)]
    mount_options: String,
    /// Whether the journal is on a disk of its own.
    #[serde(default)]
    external_journal: bool,
    /// Whether the disk's contents are handed out, as disk.img.
    #[serde(default)]
    disk_image: bool,
    /// As in a case.
    device_model: Option<BTreeMap<String, i64>>,
    disk: Option<String>,
    /// Whether the filesystem is on a partition of its disk.
    #[serde(default)]
    partition: bool,
    /// What the filesystem's device is made of, where it is not one disk.
    stack: Option<Stack>,
}

impl Verification {
    /// Reads the record; None where it is something else, such as a case.
    pub fn parse(json: &[u8]) -> Option<Result<Self, serde_json::Error>> {
        let keys: BTreeMap<String, IgnoredAny> = serde_json::from_slice(json).ok()?;
        keys.contains_key("verify").then(|| serde_json::from_slice(json))
    }

    /// Makes the device and the filesystem, and runs the self-test.
    ///
    /// # Errors
    /// If a step fails; a wrong attribution is none.
    pub fn run(
        &self,
        flash_module: &Path,
        tracer: &mut Tracer,
        output: &Path,
    ) -> anyhow::Result<()> {
        let Target { filesystem, mkfs_options, mount_options, stack, .. } = &self.verify;
        let disks = self.verify.disks(flash_module)?;
        let (parts, journal) = disks.split_at(stack.map_or(1, Stack::disks));
        let names: Vec<String> = parts.iter().map(|disk| disk.name().to_owned()).collect();
        let mut nodes = vec![match stack {
            Some(stack) => stack.build(&names)?,
            None => parts[0].node().to_owned(),
        }];
        nodes.extend(journal.iter().map(|disk| disk.node().to_owned()));
        let (device, first_sector) = match self.verify.partition {
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
        if self.verify.disk_image {
            verify::disk_image::write(&device, &output.join("disk.img"))?;
        }
        let path = output.join("verification.json");
        let json = serde_json::to_vec(&verdict)?;
        std::fs::write(&path, json).with_context(|| path.display().to_string())
    }
}

impl Target {
    /// The disk that the guest has, or modelled ones: those of the filesystem, then the journal's.
    fn disks(&self, flash_module: &Path) -> anyhow::Result<Vec<Disk>> {
        let disks = self.stack.map_or(1, Stack::disks) + usize::from(self.external_journal);
        match (&self.disk, &self.device_model) {
            (Some(name), None) if disks == 1 => {
                let disk = Disk::of_kernel(name)?;
                disk.forbid_discards()?;
                Ok(vec![disk])
            }
            (None, Some(model)) if !self.partition || self.stack.is_none() => Ok(
                flash_module::insert(flash_module, &vec![model; disks], Completion::Direct.word())?,
            ),
            _ => {
                let message = "the self-test: one of disk and device_model; a disk, or what has a \
                               partition, is one";
                Err(WrongUse(message.to_owned()).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_no_verification() {
        let json = br#"{"verify": {"filesystem": "xfs", "device_model": {"capacity_bytes": 1}}}"#;
        let target = Verification::parse(json).unwrap().unwrap().verify;
        assert_eq!((target.filesystem, target.partition), (Kind::Xfs, false));
        assert_eq!(target.device_model.unwrap()["capacity_bytes"], 1);
        assert!(Verification::parse(br#"{"case": {}, "seed": 1, "device_model": {}}"#).is_none());
        assert!(Verification::parse(b"{").is_none());
    }

    #[test]
    fn a_wrong_record_says_what_is_wrong_with_it() {
        let told = |json| Verification::parse(json).unwrap().unwrap_err().to_string();
        let json = br#"{"verify": {"filesystem": "zfs"}}"#;
        assert!(told(json).contains("unknown variant `zfs`"));
        let json = br#"{"verify": {"filesystem": "xfs", "partitions": true}}"#;
        assert!(told(json).contains("unknown field `partitions`"));
    }
}
