//! Makes a filesystem on a block device by running its own mkfs.

use std::path::Path;

use super::FilesystemError;
use super::tool::{self, ToolEnd};
use crate::record::Filesystem;

/// Bytes of a journal on a device of its own: what mkfs.ext4 gives the filesystem of 2 GiB that has
/// its journal inside, so that where the journal is alone makes the difference.
const JOURNAL_BYTES: u64 = 64 << 20;

/// What ext4's journal device and its filesystem agree on.
const EXT4_BLOCK_BYTES: u64 = 4096;

/// The mkfs program and its arguments, the device left to append.
///
/// UBIFS has none: the kernel makes it on an empty volume, at the first mount.
///
/// ext4's inode tables are written at once: left to the kernel's lazy thread (mke2fs(8),
/// lazy_itable_init) they would be written during the measured part.
fn command(kind: Filesystem) -> Option<(&'static str, &'static [&'static str])> {
    Some(match kind {
        Filesystem::Ext4 => {
            ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
        }
        Filesystem::Xfs => ("mkfs.xfs", &["-q", "-f"]),
        Filesystem::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
        Filesystem::Nilfs2 => ("mkfs.nilfs2", &["-q", "-f"]),
        Filesystem::F2fs => ("mkfs.f2fs", &["-q", "-f"]),
        Filesystem::Ubifs => return None,
    })
}

/// Makes the filesystem; whatever the devices held is gone. `options` are further ones for mkfs.
/// With a `journal`, ext4's journal or XFS's log is on that device.
///
/// # Errors
/// If the program is missing or fails; the message holds the end of what it printed.
pub fn make(
    kind: Filesystem,
    device: &Path,
    journal: Option<&Path>,
    options: &str,
) -> Result<(), FilesystemError> {
    let Some((program, arguments)) = command(kind) else { return Ok(()) };
    let mut arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    if let Some(journal) = journal {
        arguments.extend(journal_arguments(kind, journal)?);
    }
    arguments.extend(options.split_whitespace().map(Into::into));
    arguments.push(device.to_string_lossy().into_owned());
    run(program, &arguments)
}

/// Prepares the journal's device, and says how mkfs is told of it.
fn journal_arguments(kind: Filesystem, journal: &Path) -> Result<Vec<String>, FilesystemError> {
    let path = journal.to_string_lossy().into_owned();
    match kind {
        Filesystem::Ext4 => {
            let blocks = (JOURNAL_BYTES / EXT4_BLOCK_BYTES).to_string();
            let block_bytes = EXT4_BLOCK_BYTES.to_string();
            let words = ["-q", "-F", "-O", "journal_dev", "-b", &block_bytes, &path, &blocks];
            run("mkfs.ext4", &words.map(Into::into))?;
            Ok(vec!["-b".into(), block_bytes, "-J".into(), format!("device={path}")])
        }
        Filesystem::Xfs => Ok(vec!["-l".into(), format!("logdev={path},size={JOURNAL_BYTES}")]),
        kind => Err(FilesystemError::NoJournalDevice { kind }),
    }
}

fn run(program: &str, arguments: &[String]) -> Result<(), FilesystemError> {
    let ToolEnd { status, printed } = tool::run(program, arguments)?;
    if status.success() {
        return Ok(());
    }
    let (program, arguments) = (program.into(), arguments.join(" "));
    Err(FilesystemError::Make { program, arguments, status, output: printed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_too_small_is_an_error_with_the_programs_words() {
        let directory = tempfile::tempdir().unwrap();
        let device = directory.path().join("device");
        std::fs::write(&device, vec![0; 4096]).unwrap();
        let error = make(Filesystem::Ext4, &device, None, "").unwrap_err().to_string();
        assert!(error.contains("mkfs.ext4"), "{error}");
    }

    #[test]
    fn a_filesystem_without_such_a_journal_is_refused() {
        let error = make(Filesystem::F2fs, Path::new("/x"), Some(Path::new("/y")), "").unwrap_err();
        assert!(error.to_string().contains("f2fs"), "{error}");
    }
}
