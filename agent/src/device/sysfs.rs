//! A block device in /sys by its number: its name, and the disk that it is or is a partition of
//! (Documentation/ABI/stable/sysfs-block).

use std::fs;
use std::io;
use std::path::PathBuf;

use super::number;

/// The folder of a disk or a partition.
pub fn folder(device: u32) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{}", number::text(device)))
}

/// The kernel's name of a disk or a partition, as in /sys/class/block.
///
/// # Errors
/// If there is no device of that number.
pub fn name(device: u32) -> io::Result<String> {
    let link = fs::read_link(folder(device))?;
    Ok(link.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

/// The folder, without symbolic links, of the whole disk that a device is or is a partition of.
///
/// # Errors
/// If there is no device of that number.
pub fn disk_folder(device: u32) -> io::Result<PathBuf> {
    let mut place = fs::canonicalize(folder(device))?;
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
    number::parse(text.trim()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_told() {
        let gone = 4095 << 20;
        assert!(name(gone).is_err() && disk_folder(gone).is_err() && disk_number(gone).is_err());
    }
}
