//! The self-test of attribution in a guest: its record, and the way from an empty device to the
//! verdict, verification.json in the output directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::Completion;
use crate::block::Tracer;
use crate::device::disk::Disk;
use crate::device::{flash, partition};
use crate::errors::WrongUse;
use crate::filesystem::{Kind, make, mount::Mounted};
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
    /// As in a case.
    device_model: Option<BTreeMap<String, i64>>,
    disk: Option<String>,
    /// Whether the filesystem is on a partition of the disk.
    #[serde(default)]
    partition: bool,
}

impl Verification {
    /// Reads the record; None where it is something else, such as a case.
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
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
        let Target { filesystem, device_model, disk, partition } = &self.verify;
        let disk = match (disk, device_model) {
            (Some(name), _) => Disk::of_kernel(name)?,
            (None, Some(model)) => {
                let disks = flash::insert(flash_module, &[model], Completion::Direct.word())?;
                disks.into_iter().next().context("no disk of the model")?
            }
            (None, None) => {
                let message = "the self-test: neither disk nor device_model";
                return Err(WrongUse(message.to_owned()).into());
            }
        };
        let device = if *partition { partition::make(&disk)? } else { disk.node().to_owned() };
        make::make(*filesystem, &device, None, "")?;
        let mounted = Mounted::new(*filesystem, &device, None, Path::new(MOUNT_POINT), "")?;
        let verdict = verify::run(mounted.directory(), disk.node(), disk.number()?, tracer)?;
        let path = output.join("verification.json");
        let json = serde_json::to_vec(&verdict)?;
        std::fs::write(&path, json).with_context(|| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_no_verification() {
        let json = br#"{"verify": {"filesystem": "xfs", "device_model": {"capacity_bytes": 1}}}"#;
        let target = Verification::parse(json).unwrap().verify;
        assert_eq!((target.filesystem, target.partition), (Kind::Xfs, false));
        assert_eq!(target.device_model.unwrap()["capacity_bytes"], 1);
        assert!(Verification::parse(br#"{"case": {}, "seed": 1, "device_model": {}}"#).is_none());
        assert!(Verification::parse(br#"{"verify": {"filesystem": "zfs"}}"#).is_none());
    }
}
