//! Makes a filesystem on a block device by running its own mkfs.

use std::path::Path;
use std::process::Command;

use super::{FilesystemError, Kind};

/// The mkfs program and its arguments, the device left to append.
///
/// ext4's inode tables are written at once: left to the kernel's lazy thread (mke2fs(8),
/// lazy_itable_init) they would be written during the measured part.
fn command(kind: Kind) -> (&'static str, &'static [&'static str]) {
    match kind {
        Kind::Ext4 => ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
        Kind::Xfs => ("mkfs.xfs", &["-q", "-f"]),
        Kind::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        Kind::Nilfs2 => ("mkfs.nilfs2", &["-q", "-f"]),
        Kind::F2fs => ("mkfs.f2fs", &["-q", "-f"]),
    }
}

/// Makes the filesystem; whatever the device held is gone.
///
/// # Errors
/// If the program is missing or fails; the message holds the end of what it printed.
pub fn make(kind: Kind, device: &Path) -> Result<(), FilesystemError> {
    let (program, arguments) = command(kind);
    let output = Command::new(program)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args(arguments)
        .arg(device)
        .output()
        .map_err(|source| FilesystemError::Start { program: program.into(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    Err(FilesystemError::Make {
        program: program.into(),
        status: output.status,
        output: tail(&String::from_utf8_lossy(&printed), 400),
    })
}

/// The last `limit` characters, trimmed.
fn tail(text: &str, limit: usize) -> String {
    let text = text.trim();
    let skip = text.chars().count().saturating_sub(limit);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_message_is_kept() {
        assert_eq!(tail("  abcdef \n", 3), "def");
        assert_eq!(tail("ab", 3), "ab");
    }

    #[test]
    fn a_device_too_small_is_an_error_with_the_programs_words() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        std::fs::write(&device, vec![0; 4096]).unwrap();
        let error = make(Kind::Ext4, &device).unwrap_err().to_string();
        assert!(error.contains("mkfs.ext4"), "{error}");
    }
}
