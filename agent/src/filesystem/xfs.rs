//! XFS.

use super::facts::{Checker, FilesystemFacts, JOURNAL_BYTES, JournalDevice, Mkfs};

pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "xfs",
    mount_types: &["xfs"],
    mkfs: Some(Mkfs {
        program: "mkfs.xfs",
        arguments: &["-q", "-f"],
        journal: Some(JournalDevice {
            prepare: None,
            mkfs_arguments: |journal| {
                vec!["-l".to_owned(), format!("logdev={journal},size={JOURNAL_BYTES}")]
            },
            mount_option: "logdev=",
        }),
    }),
    checker: Some(Checker {
        program: "xfs_repair",
        arguments: &["-n"],
        journal_option: "-l",
        file_option: "-f",
        ..Checker::BLOCK_DEFAULTS
    }),
    ..FilesystemFacts::BLOCK_DEFAULTS
};
