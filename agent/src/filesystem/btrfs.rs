//! Btrfs.

use super::facts::{Checker, FilesystemFacts, Mkfs};

pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "btrfs",
    mount_types: &["btrfs"],
    spans_disks: true,
    mkfs: Some(Mkfs { program: "mkfs.btrfs", arguments: &["-q", "-f"], journal: None }),
    checker: Some(Checker {
        program: "btrfs",
        arguments: &["check", "--readonly"],
        ..Checker::BLOCK_DEFAULTS
    }),
    ..FilesystemFacts::BLOCK_DEFAULTS
};
