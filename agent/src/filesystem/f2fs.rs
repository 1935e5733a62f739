//! F2FS.

use super::facts::{Checker, FilesystemFacts, Mkfs};

pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "f2fs",
    mount_types: &["f2fs"],
    mkfs: Some(Mkfs { program: "mkfs.f2fs", arguments: &["-q", "-f"], journal: None }),
    checker: Some(Checker {
        program: "fsck.f2fs",
        arguments: &["--dry-run"],
        boot_arguments: &["-a"],
        ..Checker::BLOCK_DEFAULTS
    }),
    ..FilesystemFacts::BLOCK_DEFAULTS
};
