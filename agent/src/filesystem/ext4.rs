//! ext4; its driver mounts ext2 and ext3 too.

use super::facts::{Checker, FilesystemFacts, JOURNAL_BYTES, JournalDevice, Mkfs};

/// Journal device and filesystem agree on the size of a block.
const BLOCK_BYTES: u64 = 4096;

/// Inode tables are written at once: left to the kernel's lazy thread (mke2fs(8), lazy_itable_init)
/// they would be written during the measured part.
pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "ext4",
    mount_types: &["ext2", "ext3", "ext4"],
    mkfs: Some(Mkfs {
        program: "mkfs.ext4",
        arguments: &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        journal: Some(JournalDevice {
            prepare: Some(|journal| {
                let blocks = (JOURNAL_BYTES / BLOCK_BYTES).to_string();
                let block_bytes = BLOCK_BYTES.to_string();
                ["-q", "-F", "-O", "journal_dev", "-b", &block_bytes, journal, &blocks]
                    .map(str::to_owned)
                    .to_vec()
            }),
            mkfs_arguments: |journal| {
                let device = format!("device={journal}");
                vec!["-b".to_owned(), BLOCK_BYTES.to_string(), "-J".to_owned(), device]
            },
            mount_option: "",
        }),
    }),
    checker: Some(Checker {
        program: "e2fsck",
        arguments: &["-f", "-n"],
        boot_arguments: &["-p"],
        ..Checker::BLOCK_DEFAULTS
    }),
    ..FilesystemFacts::BLOCK_DEFAULTS
};
