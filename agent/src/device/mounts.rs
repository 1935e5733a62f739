//! The mount table of this process: reads /proc/self/mountinfo (proc_pid_mountinfo(5)); gives one
//! `Mount` for each line that can be understood.
//!
//! Not the crate procfs: it keeps the options in a hash map, and so loses the order in which the
//! kernel and the manifests have them.

use std::fs;
use std::io;

use crate::device::sysfs;

/// The file with the table of mounts.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Characters that stand in a field as a backslash and three octal digits; the backslash first.
const ESCAPES: [(&str, &str); 4] =
    [("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")];

/// A mounted filesystem, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// As statx(2) gives it.
    pub id: u64,
    /// s_dev; a device's number, unless the filesystem has none of its own (Btrfs, tmpfs).
    pub filesystem: u32,
    /// Path in the filesystem of what is seen at the mount point.
    pub root: String,
    pub point: String,
    /// Options of the mount.
    pub options: String,
    /// The filesystem's type, such as ext4.
    pub kind: String,
    pub source: String,
    /// Options of the filesystem.
    pub filesystem_options: String,
}

impl Mount {
    /// "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE FILESYSTEM-OPTIONS".
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let [id, _, filesystem, root, point, options, ..] = before.as_slice() else { return None };
        let mut after = after.splitn(3, ' ');
        Some(Mount {
            id: id.parse().ok()?,
            filesystem: sysfs::parse_number(filesystem)?,
            root: unescape(root),
            point: unescape(point),
            options: (*options).to_owned(),
            kind: after.next()?.to_owned(),
            source: unescape(after.next()?),
            filesystem_options: after.next().unwrap_or_default().to_owned(),
        })
    }

    /// Return the directory in which an overlay has what was changed, as an absolute path; None of
    /// other mounts, and of an overlay that is only read or was mounted by a relative path. The
    /// kernel shows a comma as \054, and what mounted it had to write a backslash before it
    /// (Documentation/filesystems/overlayfs.rst).
    pub fn upper_directory(&self) -> Option<String> {
        if self.kind != "overlay" {
            return None;
        }
        let mut options = self.filesystem_options.split(',');
        let upper = options.find_map(|option| option.strip_prefix("upperdir="))?;
        let path = unescape(upper).replace("\\054", ",").replace("\\,", ",");
        path.starts_with('/').then_some(path)
    }

    /// As in /proc/mounts.
    pub fn line(&self) -> String {
        let Self { kind, options, filesystem_options, .. } = self;
        let (source, point) = (escape(&self.source), escape(&self.point));
        format!("{source} {point} {kind} {options},{filesystem_options}")
    }
}

/// The mounts of now, in the order in which they were made.
///
/// # Errors
/// If /proc is not mounted.
pub fn read() -> io::Result<Vec<Mount>> {
    Ok(parse(&String::from_utf8_lossy(&fs::read(MOUNTINFO)?)))
}

/// The mounts of a table; lines that are none are skipped.
pub fn parse(table: &str) -> Vec<Mount> {
    table.lines().filter_map(Mount::parse).collect()
}

fn unescape(field: &str) -> String {
    let escapes = ESCAPES.iter().rev();
    escapes.fold(field.to_owned(), |text, (sign, escape)| text.replace(escape, sign))
}

fn escape(field: &str) -> String {
    let escapes = ESCAPES.iter();
    escapes.fold(field.to_owned(), |text, (sign, escape)| text.replace(sign, escape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_escaped_signs_are_understood() {
        let table = "\
            36 22 0:31 /sub /mnt/a\\040b rw,noatime shared:2 - btrfs /dev/sdb1 rw,subvol=/s\n\
            a line of another kind\n\
            40 22 254:1 / / rw - ext4 /dev/vda1\n";
        let [sub, root] = parse(table).try_into().unwrap();
        assert_eq!((sub.id, sub.filesystem, sub.root.as_str()), (36, 31, "/sub"));
        assert_eq!((sub.point.as_str(), sub.options.as_str()), ("/mnt/a b", "rw,noatime"));
        assert_eq!(sub.line(), "/dev/sdb1 /mnt/a\\040b btrfs rw,noatime,rw,subvol=/s");
        assert_eq!((root.filesystem, root.kind.as_str()), (254 << 20 | 1, "ext4"));
    }

    #[test]
    fn every_sign_comes_back_from_its_escape() {
        for text in ["a b\tc\nd\\e", "\\040", "\\\\134", "plain"] {
            assert_eq!(unescape(&escape(text)), text);
        }
        assert_eq!(escape("a b"), "a\\040b");
    }

    #[test]
    fn this_process_has_a_root() {
        assert!(read().unwrap().iter().any(|mount| mount.point == "/"));
    }
}
