//! Device numbers: a disk's or a filesystem's (s_dev), as the kernel keeps them in a u32,
//! `major << 20 | minor` (include/linux/kdev_t.h).

use std::os::unix::fs::MetadataExt;

/// The kernel's number of what stat(2) gives as st_rdev, which is laid out otherwise.
pub fn of_node(st_rdev: u64) -> u32 {
    rustix::fs::major(st_rdev) << 20 | rustix::fs::minor(st_rdev)
}

/// That of a node in /dev.
///
/// # Errors
/// If it is not there.
pub fn of_path(node: &std::path::Path) -> std::io::Result<u32> {
    Ok(of_node(std::fs::metadata(node)?.rdev()))
}

/// MAJOR:MINOR, as in /sys/dev/block and in the table files.
pub fn text(number: u32) -> String {
    format!("{}:{}", number >> 20, number & 0xfffff)
}

/// The number of MAJOR:MINOR.
pub fn parse(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_and_its_text_have_the_same_numbers() {
        // A minor of more than 8 bits is in two parts in st_rdev.
        let st_rdev = rustix::fs::makedev(259, 0x12345);
        assert_eq!(of_node(st_rdev), 259 << 20 | 0x12345);
        assert_eq!(text(of_node(st_rdev)), "259:74565");
        assert_eq!(parse("259:74565"), Some(of_node(st_rdev)));
        assert_eq!((parse("259"), parse("4096:0"), parse("1:x")), (None, None, None));
    }
}
