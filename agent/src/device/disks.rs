//! Finds the disks that something is on. Reads the mount table and /sys; gives the whole disks
//! behind a block device or a directory, because requests are those of disks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::layers::{self, Layer};
use super::mounts::{self, MOUNTINFO, Mount};
use crate::device::sysfs;
use crate::errors::WrongUse;
use crate::filesystem::Filesystem;

/// Disks that are to be traced, and what is known to be on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disks {
    /// Kernel numbers of whole disks.
    pub numbers: BTreeSet<u32>,
    /// The same disks.
    pub layers: Vec<Layer>,
    /// Mounts from these disks, as mountinfo tells: "DEVICE MOUNT-POINT TYPE OPTIONS".
    pub mounts: Vec<String>,
    /// A mount point of one of them, if all mounts from them are of one filesystem.
    pub place: Option<PathBuf>,
    /// Types of mounted filesystems whose metadata the tracer does not know.
    pub unknown_types: BTreeSet<String>,
    /// Disks with known filesystems that are not to be traced, each with the reason.
    pub left_out: Vec<String>,
}

impl Disks {
    /// The disks that nodes of /dev are, or are partitions of.
    ///
    /// # Errors
    /// If one is no block device, or not one that requests are made for.
    pub fn from_devices(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let numbers = paths.iter().map(|path| disk_of_node(path)).collect::<Result<_, _>>()?;
        with_mounts(numbers, &mounts()?)
    }

    /// The disks of all mounted filesystems that are known, but those that are not to be traced,
    /// and those that others of them are made of.
    ///
    /// # Errors
    /// If the mount table or a disk cannot be read.
    pub fn from_machine() -> anyhow::Result<Self> {
        let mounts = mounts()?;
        let (mut found, mut left_out) = (BTreeSet::new(), Vec::new());
        for mount in
            mounts.iter().filter(|mount| Filesystem::from_mount_type(&mount.kind).is_some())
        {
            match disks_of_mount(mount) {
                Ok(disks) => found.extend(disks),
                Err(error) => left_out.push(error.to_string()),
            }
        }
        let mut traced = BTreeMap::new();
        for number in found {
            let layer = layer(number)?;
            match layer.check() {
                Ok(()) => drop(traced.insert(number, layer)),
                Err(error) => left_out.push(error.to_string()),
            }
        }
        let below: BTreeSet<String> = traced.values().flat_map(Layer::all_below).collect();
        for layer in traced.values().filter(|layer| below.contains(&layer.name)) {
            left_out.push(format!("{}: {} is made of it", layer.name, layer.above().join(", ")));
        }
        traced.retain(|_, layer| !below.contains(&layer.name));
        Ok(Disks { left_out, ..with_mounts(traced.into_keys().collect(), &mounts)? })
    }

    /// The disks of the filesystem that a directory is on.
    ///
    /// # Errors
    /// If the directory is not there, or not on a disk.
    pub fn from_directory(path: &Path) -> anyhow::Result<Self> {
        let cannot = |error| WrongUse(format!("{}: {error}", path.display()));
        let directory = fs::canonicalize(path).map_err(cannot)?;
        let mounts = mounts()?;
        let mount = mount_of(&mounts, &directory)
            .ok_or_else(|| WrongUse(format!("{}: on no mount", path.display())))?;
        with_mounts(disks_of_mount(mount)?, &mounts)
    }
}

/// Whether filesystems lie on some disks, by their numbers (s_dev).
#[derive(Debug, Default)]
pub struct FilesystemPlaces {
    disks: BTreeSet<u32>,
    known: BTreeMap<u32, bool>,
}

impl FilesystemPlaces {
    /// Return the places of filesystems on some disks.
    pub fn new(disks: &BTreeSet<u32>) -> Self {
        FilesystemPlaces { disks: disks.clone(), known: BTreeMap::new() }
    }

    /// Return whether a filesystem may be on the disks. Of one whose number is of no device, as of
    /// Btrfs, that is not known where this process does not see it mounted and some Btrfs is on
    /// them; nor of 0.
    pub fn may_hold(&mut self, filesystem: u32) -> bool {
        if filesystem == 0 {
            return true;
        }
        let disks = &self.disks;
        let look = || match filesystem >> 20 {
            0 => !disks_of_number(filesystem).unwrap_or_else(members).is_disjoint(disks),
            _ => sysfs::disk_number(filesystem).is_ok_and(|disk| disks.contains(&disk)),
        };
        *self.known.entry(filesystem).or_insert_with(look)
    }

    /// Looks anew from now on: a number may be another filesystem's.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

fn with_mounts(numbers: BTreeSet<u32>, mounts: &[Mount]) -> anyhow::Result<Disks> {
    let layers = numbers.iter().map(|&number| layer(number)).collect::<Result<Vec<_>, _>>()?;
    layers.iter().try_for_each(Layer::check)?;
    layers::check_apart(&layers)?;
    let mut disks = Disks { numbers, layers, ..Disks::default() };
    let mut places = BTreeMap::new();
    for mount in mounts {
        if !disks_of_mount(mount).is_ok_and(|on| !on.is_disjoint(&disks.numbers)) {
            continue;
        }
        let Mount { source, point, kind, filesystem_options, .. } = mount;
        disks.mounts.push(format!("{source} {point} {kind} {filesystem_options}"));
        places.entry(source).or_insert(point);
        if Filesystem::from_mount_type(kind).is_none() {
            disks.unknown_types.insert(kind.clone());
        }
    }
    if let (1, Some((_, point))) = (places.len(), places.first_key_value()) {
        disks.place = Some(PathBuf::from(point));
    }
    Ok(disks)
}

fn mounts() -> anyhow::Result<Vec<Mount>> {
    mounts::read().with_context(|| MOUNTINFO)
}

/// The mount with the longest mount point above a path; of equal ones the last, which hides them.
fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| Path::new(&mount.point).components().count())
}

fn disks_of_mount(mount: &Mount) -> anyhow::Result<BTreeSet<u32>> {
    if Filesystem::from_mount_type(&mount.kind).is_some_and(Filesystem::spans_disks) {
        return disks_of_members(mount);
    }
    // Major number 0: of filesystems without a device (Documentation/admin-guide/devices.txt).
    if mount.filesystem >> 20 == 0 {
        let Mount { point, kind, .. } = mount;
        let message = format!("{point}: {kind} is on no block device; name a --device");
        return Err(WrongUse(message).into());
    }
    Ok(BTreeSet::from([whole_disk(mount.filesystem)?]))
}

/// The disks of all filesystems that list their devices in /sys/fs.
fn members() -> BTreeSet<u32> {
    let folders = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    folders("/sys/fs".into())
        .flat_map(|kind| folders(kind.path()))
        .flat_map(|filesystem| folders(filesystem.path().join("devices")))
        .filter_map(|device| fs::read_to_string(device.path().join("dev")).ok())
        .filter_map(|text| whole_disk(sysfs::parse_number(text.trim())?).ok())
        .collect()
}

/// The disks of a mounted filesystem by its number; None where they cannot be found.
fn disks_of_number(filesystem: u32) -> Option<BTreeSet<u32>> {
    let mounts = mounts().ok()?;
    let mount = mounts.iter().find(|mount| mount.filesystem == filesystem)?;
    disks_of_mount(mount).ok()
}

/// The disks of a filesystem that lists its devices in /sys/fs, as Btrfs does.
fn disks_of_members(mount: &Mount) -> anyhow::Result<BTreeSet<u32>> {
    let source = fs::canonicalize(&mount.source)?;
    let name = source.file_name().unwrap_or_default();
    for filesystem in fs::read_dir(Path::new("/sys/fs").join(&mount.kind))?.flatten() {
        let devices = filesystem.path().join("devices");
        if devices.join(name).exists() {
            let number = |device: fs::DirEntry| {
                let path = device.path().join("dev");
                let text = fs::read_to_string(&path)?;
                let number = sysfs::parse_number(text.trim());
                whole_disk(number.with_context(|| format!("{}: {text}", path.display()))?)
            };
            return fs::read_dir(devices)?.flatten().map(number).collect();
        }
    }
    Ok(BTreeSet::from([disk_of_node(&source)?]))
}

fn disk_of_node(path: &Path) -> anyhow::Result<u32> {
    let cannot = |what: String| WrongUse(format!("{}: {what}", path.display()));
    let metadata = fs::metadata(path).map_err(|error| cannot(error.to_string()))?;
    if !metadata.file_type().is_block_device() {
        return Err(cannot("no block device; name one of lsblk's".to_owned()).into());
    }
    whole_disk(sysfs::device_number(metadata.rdev()))
}

/// The disk that a device is, or is a partition of.
fn whole_disk(device: u32) -> anyhow::Result<u32> {
    let node = sysfs::device_folder(device);
    sysfs::disk_number(device)
        .map_err(|error| WrongUse(format!("{}: {error}: no such disk", node.display())).into())
}

fn layer(disk: u32) -> anyhow::Result<Layer> {
    let path = sysfs::device_folder(disk);
    let folder = fs::canonicalize(&path).with_context(|| path.display().to_string())?;
    Ok(Layer::new(&folder))
}

/// Return what tells one life of a disk from the next: a loop device that is detached and used
/// again gets another (Documentation/ABI/stable/sysfs-block, diskseq). None once the disk is gone.
pub fn life(disk: u32) -> Option<String> {
    let place = sysfs::device_folder(disk);
    let sequence = fs::read_to_string(place.join("diskseq")).unwrap_or_default();
    let size = fs::read_to_string(place.join("size")).ok()?;
    (size.trim() != "0").then(|| sequence.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /run rw - tmpfs tmpfs rw,size=5g
31 22 7:0 / /mnt/a\040b rw,noatime - xfs /dev/loop0 rw,attr2
32 22 7:1 / /mnt/a\040b rw - ext4 /dev/loop1 rw";

    fn mounts() -> Vec<Mount> {
        mounts::parse(TABLE)
    }

    #[test]
    fn the_nearest_and_latest_mount_holds_a_directory() {
        let mounts = mounts();
        let device =
            |path| sysfs::number_text(mount_of(&mounts, Path::new(path)).unwrap().filesystem);
        assert_eq!(device("/home/x"), "8:1");
        assert_eq!(device("/running"), "8:1");
        assert_eq!(device("/run/user"), "0:26");
        assert_eq!(device("/mnt/a b/c"), "7:1");
    }

    #[test]
    fn a_directory_without_a_disk_is_told_so() {
        let error = disks_of_mount(&mounts()[1]).unwrap_err();
        assert!(error.is::<WrongUse>());
        assert!(error.to_string().contains("tmpfs is on no block device"), "{error}");
    }

    #[test]
    fn a_path_that_is_no_block_device_is_named() {
        for path in ["/dev/null", "/no/such/node"] {
            let error = Disks::from_devices(&[PathBuf::from(path)]).unwrap_err();
            assert!(error.is::<WrongUse>() && error.to_string().starts_with(path), "{error}");
        }
    }
}
