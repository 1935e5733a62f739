//! UBIFS on raw NAND of this machine, for one run: attaches UBI to an MTD device, removes what is
//! on it, makes a volume of all of it, and mounts UBIFS, which only this process and its children
//! see. All of it is undone at the end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::{Value, json};

use crate::errors::WrongUse;
use crate::filesystem::mount::MountedFilesystem;

use crate::raw_nand::ubi::{self, UbiDevice};
use crate::record::{Filesystem, LiveSettings};

const MTD: &str = "/sys/class/mtd";
/// Says what the kernel tells of an MTD device (Documentation/ABI/testing/sysfs-class-mtd).
const FACTS: [&str; 8] =
    ["name", "type", "size", "erasesize", "writesize", "oobsize", "subpagesize", "ecc_strength"];

/// A mounted filesystem on an MTD device.
pub struct LiveNand {
    ubi: UbiDevice,
    /// None once it is unmounted.
    mounted: Option<MountedFilesystem>,
    place: PathBuf,
    configuration: Value,
}

impl LiveNand {
    /// Makes UBIFS on `node`, such as /dev/mtd3; whatever was on it is lost.
    ///
    /// # Errors
    /// If it is no raw NAND, or in use, or the kernel refuses.
    pub fn make(node: &Path, settings: &LiveSettings) -> anyhow::Result<Self> {
        let (number, facts) = describe_device(node)?;
        let filesystem = settings.filesystem.filter(|it| it.is_on_raw_nand());
        let wrong = || WrongUse(format!("{}: on raw NAND the filesystem is ubifs", node.display()));
        let filesystem = filesystem.ok_or_else(wrong)?;
        let allocators = settings.ubi_allocator.zip(settings.ubifs_allocator);
        if let Some((ubi, ubifs)) = allocators {
            ubi::choose_allocator("ubi", ubi)?;
            ubi::choose_allocator("ubifs", ubifs)?;
        }
        let ubi = UbiDevice::attach(number, UbiDevice::ANY).with_context(|| {
            let node = node.display();
            format!(
                "{node}: UBI does not take it; what else is on it goes by flash_erase {node} 0 0, \
                 and a UBI device of it by ubidetach -p {node}"
            )
        })?;
        let place = std::env::temp_dir().join(format!("joj-nand-{}", std::process::id()));
        let configuration = json!({ "mtd": facts });
        let mut nand = Self { ubi, mounted: None, place, configuration };
        nand.mount(filesystem, settings)?;
        if let Some((ubi, ubifs)) = allocators {
            nand.configuration["buffers"] = json!(ubi::read_buffers(ubi, ubifs)?);
        }
        Ok(nand)
    }

    fn mount(&mut self, kind: Filesystem, settings: &LiveSettings) -> anyhow::Result<()> {
        self.ubi.remove_volumes()?;
        self.ubi.make_volume()?;
        self.ubi.empty_volume()?;
        // SAFETY: of all that threads share, only the mounts become this process's own.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.context("mounts of our own")?;
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).context("mounts of our own")?;
        let options = settings.mount_options.as_deref().unwrap_or_default();
        self.mounted =
            Some(MountedFilesystem::new(kind, &self.ubi.volume(), None, &self.place, options)?);
        Ok(())
    }

    /// Return the directory that it is mounted on.
    pub fn directory(&self) -> &Path {
        &self.place
    }

    /// Return what is in force, as the manifest has it.
    pub fn configuration(&self) -> &Value {
        &self.configuration
    }

    /// Unmounts and detaches it; nobody uses it any more.
    ///
    /// # Errors
    /// If the kernel refuses; with the line that does it by hand.
    pub fn close(mut self) -> anyhow::Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> anyhow::Result<()> {
        if let Some(mounted) = self.mounted.take() {
            mounted.unmount()?;
        }
        if self.place.exists() {
            let what = || format!("cannot remove {}", self.place.display());
            fs::remove_dir(&self.place).with_context(what)?;
        }
        if !self.ubi.is_attached() {
            return Ok(());
        }
        let by_hand = || format!("UBI is still attached; detach it by ubidetach -d {}", self.ubi.0);
        self.ubi.detach().with_context(by_hand)
    }
}

impl Drop for LiveNand {
    /// After an error, which is what is told.
    fn drop(&mut self) {
        let _ = self.undo();
    }
}

/// The number of an MTD device, and what the kernel tells of it.
fn describe_device(node: &Path) -> anyhow::Result<(i32, Value)> {
    let wrong = |why: &str| WrongUse(format!("{}: {why}; name one as /dev/mtd0", node.display()));
    let name = node.strip_prefix("/dev").unwrap_or(node).to_string_lossy().into_owned();
    let number = name.strip_prefix("mtd").and_then(|digits| digits.parse().ok());
    let number: i32 = number.ok_or_else(|| wrong("no MTD device"))?;
    let folder = Path::new(MTD).join(&name);
    let fact = |fact: &str| Some(fs::read_to_string(folder.join(fact)).ok()?.trim().to_owned());
    match fact("type").as_deref() {
        None => return Err(wrong("this machine has no such MTD device").into()),
        Some("nand" | "mlc-nand") => {}
        Some(_) => return Err(wrong("it is not raw NAND").into()),
    }
    let facts: serde_json::Map<String, Value> =
        FACTS.iter().map(|name| ((*name).to_owned(), json!(fact(name)))).collect();
    Ok((number, facts.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_no_mtd_device_is_refused() {
        for node in ["/dev/null", "/dev/mtdx", "/dev/mtd999", "mtd0ro"] {
            let error = describe_device(Path::new(node)).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().contains(node), "{error}");
        }
    }
}
