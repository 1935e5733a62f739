//! Filesystems: what the agent knows of each, in a file of its own name; runs their own mkfs and
//! checkers, mounts them, and reads back their real settings.
//!
//! facts -> ext4 and the others -> all of them here -> tools, mount

mod btrfs;
mod ext4;
mod f2fs;
mod facts;
pub mod mount;
mod nilfs2;
pub mod tools;
mod ubifs;
mod xfs;

use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::{Serialize, Serializer};

pub use facts::Checker;
use facts::FilesystemFacts;

/// All filesystems: whoever adds one adds its file, and its line here.
const ALL: &[&FilesystemFacts] = &[
    &ext4::FACTS,
    &xfs::FACTS,
    &btrfs::FACTS,
    &nilfs2::FACTS,
    &f2fs::FACTS,
    &ubifs::FACTS,
    #[cfg(test)]
    &tests::ADDED,
];

/// One of the filesystems.
#[derive(Clone, Copy)]
pub struct Filesystem(&'static FilesystemFacts);

impl Filesystem {
    /// Return the filesystem of a word of cases and command lines.
    pub fn from_word(word: &str) -> Option<Self> {
        ALL.iter().find(|facts| facts.word == word).map(|facts| Self(facts))
    }

    /// Return the filesystem that mounts of this type have, as the kernel names types.
    pub fn from_mount_type(name: &str) -> Option<Self> {
        ALL.iter().find(|facts| facts.mount_types.contains(&name)).map(|facts| Self(facts))
    }

    /// Return the words of the filesystems on block devices, as "a, b or c".
    pub fn words_on_block_devices() -> String {
        let blocks = ALL.iter().filter(|facts| !facts.is_on_raw_nand);
        let words: Vec<&str> = blocks.map(|facts| facts.word).collect();
        let Some((last, others)) = words.split_last() else { return String::new() };
        format!("{} or {last}", others.join(", "))
    }

    /// Return the word used in cases, tables and SQL, which is the kernel's name of the type too.
    pub fn word(self) -> &'static str {
        self.0.word
    }

    /// Return whether it is on raw NAND, by UBI; all others are on block devices.
    pub fn is_on_raw_nand(self) -> bool {
        self.0.is_on_raw_nand
    }

    /// Return whether one may be on several disks, so that its device number is of none.
    pub fn spans_disks(self) -> bool {
        self.0.spans_disks
    }

    /// Return its checker, where it has one.
    pub fn checker(self) -> Option<Checker> {
        self.0.checker
    }
}

/// Return whether a line of the kernel's log is about a torn page from which a filesystem recovers:
/// damage is only what it does not recover from.
pub fn is_recovery_message(line: &str) -> bool {
    ALL.iter().any(|facts| (facts.is_recovery_message)(line))
}

impl PartialEq for Filesystem {
    fn eq(&self, other: &Self) -> bool {
        self.word() == other.word()
    }
}

impl Eq for Filesystem {}

impl fmt::Debug for Filesystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl Serialize for Filesystem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for Filesystem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::from_word(&word).ok_or_else(|| {
            let words: Vec<String> = ALL.iter().map(|facts| format!("`{}`", facts.word)).collect();
            let words = words.join(", ");
            D::Error::custom(format!("unknown variant `{word}`, expected one of {words}"))
        })
    }
}

/// A failure to make, mount or check a filesystem.
#[derive(Debug, thiserror::Error)]
pub enum FilesystemError {
    #[error("cannot start {program}: {source}; the image lacks it")]
    Start { program: String, source: std::io::Error },
    #[error("{program} {arguments} failed ({status}): {output}")]
    Make { program: String, arguments: String, status: std::process::ExitStatus, output: String },
    #[error("{kind} has no journal that could be on another device")]
    NoJournalDevice { kind: Filesystem },
    #[error("cannot mount {device} on {directory} as {kind} with options '{options}': {source}")]
    Mount {
        device: PathBuf,
        directory: PathBuf,
        kind: Filesystem,
        options: String,
        source: rustix::io::Errno,
    },
    #[error("cannot sync or unmount {directory}: {source}")]
    Finish { directory: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
}

#[cfg(test)]
mod tests {
    use super::facts::{JournalDevice, Mkfs};
    use super::*;

    /// A filesystem as somebody would add it: nothing else names it.
    pub(super) const ADDED: FilesystemFacts = FilesystemFacts {
        word: "addedfs",
        mount_types: &["addedfs"],
        mkfs: Some(Mkfs {
            program: "true",
            arguments: &["-q"],
            journal: Some(JournalDevice {
                prepare: None,
                mkfs_arguments: |journal| vec![format!("--log={journal}")],
                mount_option: "",
            }),
        }),
        checker: Some(Checker { program: "false", arguments: &[], ..Checker::BLOCK_DEFAULTS }),
        is_recovery_message: |line| line == "addedfs: recovering",
        ..FilesystemFacts::BLOCK_DEFAULTS
    };

    #[test]
    fn an_added_filesystem_is_read_made_checked_and_known_by_its_facts_alone() {
        let added: Filesystem = serde_json::from_str("\"addedfs\"").unwrap();
        assert_eq!(serde_json::to_string(&added).unwrap(), "\"addedfs\"");
        assert_eq!(Filesystem::from_mount_type("addedfs"), Some(added));
        assert!(Filesystem::words_on_block_devices().ends_with(" or addedfs"));
        let (device, journal) = (std::path::Path::new("/x"), std::path::Path::new("/y"));
        tools::make(added, device, Some(journal), "").unwrap();
        assert!(matches!(
            tools::check(added, device, None).unwrap(),
            tools::CheckerAnswer::Unclean(_)
        ));
        assert!(is_recovery_message("addedfs: recovering"));
    }

    #[test]
    fn a_type_of_mounts_is_of_one_filesystem() {
        for (name, word) in [("ext3", Some("ext4")), ("xfs", Some("xfs")), ("tmpfs", None)] {
            assert_eq!(Filesystem::from_mount_type(name).map(Filesystem::word), word);
        }
        // It is on no disk that could be traced.
        assert_eq!(Filesystem::from_mount_type("ubifs"), None);
    }

    #[test]
    fn every_filesystem_has_its_own_word() {
        let words: std::collections::BTreeSet<_> = ALL.iter().map(|facts| facts.word).collect();
        assert_eq!(words.len(), ALL.len());
    }
}
