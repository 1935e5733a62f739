//! Block devices in /sys by their numbers (Documentation/ABI/stable/sysfs-block): the name of one,
//! and the disk that it is or is a partition of. The kernel keeps the number of a device or a
//! filesystem (s_dev) in a u32, `major << 20 | minor` (include/linux/kdev_t.h).

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::{fs, io};

/// The kernel's number of what stat(2) gives as st_rdev, which is laid out otherwise.
pub fn device_number(st_rdev: u64) -> u32 {
    rustix::fs::major(st_rdev) << 20 | rustix::fs::minor(st_rdev)
}

/// That of a node in /dev.
///
/// # Errors
/// If it is not there.
pub fn number_of_node(node: &std::path::Path) -> std::io::Result<u32> {
    Ok(device_number(std::fs::metadata(node)?.rdev()))
}

/// MAJOR:MINOR, as in /sys/dev/block and in the table files.
pub fn number_text(number: u32) -> String {
    format!("{}:{}", number >> 20, number & 0xfffff)
}

/// The number of MAJOR:MINOR.
pub fn parse_number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

/// The folder of a disk or a partition.
pub fn device_folder(device: u32) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}", number_text(device)))
}

/// The kernel's name of a disk or a partition, as in /sys/class/block.
///
/// # Errors
/// If there is no device of that number.
pub fn device_name(device: u32) -> io::Result<String> {
    let link = fs::read_link(device_folder(device))?;
    Ok(link.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The folder, without symbolic links, of the whole disk that a device is or is a partition of.
///
/// # Errors
/// If there is no device of that number.
pub fn disk_folder(device: u32) -> io::Result<PathBuf> {
    let mut place = fs::canonicalize(device_folder(device))?;
    if place.join("partition").exists() {
        place.pop();
    }
    Ok(place)
}

/// The number of that disk.
///
/// # Errors
/// If there is no device of that number.
pub fn disk_number(device: u32) -> io::Result<u32> {
    let path = disk_folder(device)?.join("dev");
    let text = fs::read_to_string(&path)?;
    let wrong = || io::Error::other(format!("{}: {text}", path.display()));
    parse_number(text.trim()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_its_text_have_the_same_numbers() {
        // A minor of more than 8 bits is in two parts in st_rdev.
        let st_rdev = rustix::fs::makedev(259, 0x12345);
        assert_eq!(device_number(st_rdev), 259 << 20 | 0x12345);
        assert_eq!(number_text(device_number(st_rdev)), "259:74565");
        assert_eq!(parse_number("259:74565"), Some(device_number(st_rdev)));
        assert_eq!(
            (parse_number("259"), parse_number("4096:0"), parse_number("1:x")),
            (None, None, None)
        );
    }

    #[test]
    fn a_device_that_is_not_there_is_told() {
        let gone = 4095 << 20;
        assert!(
            device_name(gone).is_err() && disk_folder(gone).is_err() && disk_number(gone).is_err()
        );
    }
}
