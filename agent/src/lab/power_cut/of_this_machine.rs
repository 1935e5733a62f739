//! Tells damage from failures of the machine that looks for it: reads an error of mounting after a
//! power cut; says whether it tells nothing of what the cut left, as memory ran out.

use rustix::io::Errno;

use crate::filesystem::FilesystemError;

/// What mount(2) answers of the machine, and not of what is on the device: ENOENT, say, may be of a
/// tree of Btrfs.
const OF_MOUNTING: [Errno; 4] = [Errno::NOMEM, Errno::BUSY, Errno::PERM, Errno::MFILE];

/// Whether a filesystem could not be mounted for a reason that is not on its device.
pub fn mounting(error: &FilesystemError) -> bool {
    match error {
        FilesystemError::Mount { source, .. } => OF_MOUNTING.contains(source),
        _ => true,
    }
}

/// Whether UBI could not be attached for a reason that is not on the NAND.
pub fn attaching(error: &anyhow::Error) -> bool {
    let source = error.downcast_ref::<std::io::Error>().and_then(Errno::from_io_error);
    source.is_some_and(|source| OF_MOUNTING.contains(&source))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_filesystem_that_is_gone_is_told_from_a_mount_without_memory() {
        let mount = |source| FilesystemError::Mount {
            device: PathBuf::new(),
            directory: PathBuf::new(),
            kind: crate::record::Filesystem::Ext4,
            options: String::new(),
            source,
        };
        assert!(mounting(&mount(Errno::NOMEM)));
        for source in [Errno::INVAL, Errno::IO, Errno::UCLEAN, Errno::NOENT] {
            assert!(!mounting(&mount(source)), "{source}");
        }
    }
}
