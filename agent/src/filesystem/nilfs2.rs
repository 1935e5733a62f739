//! NILFS2, which has no checker.

use super::facts::{FilesystemFacts, Mkfs};

pub const FACTS: FilesystemFacts = FilesystemFacts {
    word: "nilfs2",
    mount_types: &["nilfs2"],
    mkfs: Some(Mkfs { program: "mkfs.nilfs2", arguments: &["-q", "-f"], journal: None }),
    ..FilesystemFacts::BLOCK_DEFAULTS
};
