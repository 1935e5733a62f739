//! The structures on raw NAND: UBI's two headers (drivers/mtd/ubi/ubi-media.h, big-endian), which
//! say which logical block of which volume a block is; UBIFS's nodes (fs/ubifs/ubifs-media.h,
//! little-endian), by their headers and keys; and the names of files, from the entries of
//! directories as they are programmed, whether or not a call on a file was ever seen.

use std::collections::HashMap;
use std::ops::Range;

const ERASE_COUNTER_MAGIC: &[u8] = b"UBI#";
const VOLUME_MAGIC: &[u8] = b"UBI!";

/// UBI_LAYOUT_VOLUME_ID: the volume that holds the table of volumes.
pub const LAYOUT_VOLUME: u32 = 0x7fff_efff;

/// One of UBI's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UbiHeader {
    EraseCounter { erases: u64, data_offset_bytes: u32 },
    Volume { volume: u32, logical_block: u32 },
}

/// The header that bytes begin with.
pub fn parse_header(bytes: &[u8]) -> Option<UbiHeader> {
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    match bytes.get(..4)? {
        ERASE_COUNTER_MAGIC => {
            let erases = u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?);
            Some(UbiHeader::EraseCounter { erases, data_offset_bytes: word(20)? })
        }
        VOLUME_MAGIC => Some(UbiHeader::Volume { volume: word(8)?, logical_block: word(12)? }),
        _ => None,
    }
}

/// UBIFS_NODE_MAGIC.
const MAGIC: u32 = 0x0610_1831;

/// Bytes of the common header; of those that say what a node is of, at most.
pub const HEADER_BYTES: usize = 24;
pub const TELLING_BYTES: usize = 64;

/// UBIFS_BLOCK_SIZE.
const FILE_BLOCK_BYTES: u64 = 4096;

/// UBIFS_PADDING_BYTE: before the next page, where no padding node fits.
pub const PADDING_BYTE: u8 = 0xce;

/// Nodes begin at multiples of so many bytes.
pub const ALIGNMENT_BYTES: usize = 8;

/// The subject of bytes on raw NAND.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeSubject {
    Data {
        inode: u64,
        offset_bytes: u64,
    },
    Inode {
        inode: u64,
    },
    /// An entry of the directory (or, for an extended attribute, the file) that has it.
    Entry {
        inode: u64,
    },
    Truncation {
        inode: u64,
    },
    Padding,
    Superblock,
    Master,
    Reference,
    Index,
    Commit,
    Orphan,
    Authentication,
    /// The tree of the blocks' properties, whose nodes are packed in bits and have no header.
    Properties,
    EraseCounter,
    VolumeHeader,
    VolumeTable,
    /// Read, and never programmed.
    Erased,
    Unknown,
}

impl NodeSubject {
    /// The inode that it is of.
    pub fn inode(self) -> Option<u64> {
        match self {
            Self::Data { inode, .. }
            | Self::Inode { inode }
            | Self::Entry { inode }
            | Self::Truncation { inode } => Some(inode),
            _ => None,
        }
    }
}

/// A node, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlashNode {
    pub what: NodeSubject,
    /// With what pads it to the next node.
    pub length_bytes: usize,
    /// The same in two places: the later one is a copy.
    pub sequence: u64,
}

/// A name in a directory (struct ubifs_dent_node). Where a name is taken away, it is of no inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub directory: u64,
    pub name: String,
    pub inode: u64,
    pub is_directory: bool,
}

/// The areas of a filesystem, by logical blocks (struct ubifs_sb_node).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Areas {
    pub properties: Range<u32>,
}

/// The node that bytes begin with; all of those that say so are there.
pub fn parse_node(bytes: &[u8]) -> Option<FlashNode> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length_bytes = word(16)? as usize;
    if word(0)? != MAGIC || length_bytes < HEADER_BYTES {
        return None;
    }
    let sequence = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    let mut padded_bytes = length_bytes.next_multiple_of(ALIGNMENT_BYTES);
    let inode = u64::from(word(24)?);
    let what = match bytes.get(20)? {
        0 => NodeSubject::Inode { inode },
        1 => {
            let block = u64::from(word(28)? & 0x1fff_ffff);
            NodeSubject::Data { inode, offset_bytes: block * FILE_BLOCK_BYTES }
        }
        2 | 3 => NodeSubject::Entry { inode },
        4 => NodeSubject::Truncation { inode },
        5 => {
            padded_bytes = (length_bytes + word(24)? as usize).next_multiple_of(ALIGNMENT_BYTES);
            NodeSubject::Padding
        }
        6 => NodeSubject::Superblock,
        7 => NodeSubject::Master,
        8 => NodeSubject::Reference,
        9 => NodeSubject::Index,
        10 => NodeSubject::Commit,
        11 => NodeSubject::Orphan,
        12 | 13 => NodeSubject::Authentication,
        _ => NodeSubject::Unknown,
    };
    Some(FlashNode { what, length_bytes: padded_bytes, sequence })
}

/// UBIFS_DENT_NODE: a name in a directory. Names of extended attributes have a kind of their own.
const ENTRY_NODE: u8 = 2;
const ENTRY_HEAD_BYTES: usize = 56;
/// UBIFS_ITYPE_DIR.
const DIRECTORY_TYPE: u8 = 1;

/// The bytes of a node that begins so, until which its name ends; of another kind of node, 0.
pub fn named_bytes(bytes: &[u8]) -> usize {
    match bytes.get(20) {
        Some(&ENTRY_NODE) => {
            let length = bytes.get(50..52).map_or(0, |it| u16::from_le_bytes([it[0], it[1]]));
            let node = bytes.get(16..20).map_or(0, |it| it[0] as usize | (it[1] as usize) << 8);
            node.min(ENTRY_HEAD_BYTES + usize::from(length))
        }
        _ => 0,
    }
}

/// The name that a node gives; all of its bytes are there.
pub fn entry(bytes: &[u8]) -> Option<DirectoryEntry> {
    let name = bytes.get(ENTRY_HEAD_BYTES..named_bytes(bytes))?;
    Some(DirectoryEntry {
        directory: u32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?).into(),
        name: String::from_utf8_lossy(name).into_owned(),
        inode: u64::from_le_bytes(bytes.get(40..48)?.try_into().ok()?),
        is_directory: *bytes.get(49)? == DIRECTORY_TYPE,
    })
}

/// Return what a superblock node says of the areas.
pub fn areas(bytes: &[u8]) -> Option<Areas> {
    const FIRST_LOG_BLOCK: u32 = 3;
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let begin = FIRST_LOG_BLOCK.checked_add(word(56)?)?;
    Some(Areas { properties: begin..begin.checked_add(word(60)?)? })
}

/// UBIFS_ROOT_INO.
const ROOT: u64 = 1;
/// Directories in each other, at most: a path has 4096 bytes.
const MOST_STEPS: usize = 2048;

/// The last name of each inode, which it keeps here when it is taken away.
#[derive(Debug, Default)]
pub struct InodeNames {
    entries: HashMap<u64, DirectoryEntry>,
}

impl InodeNames {
    /// An entry was programmed, which was not moved from elsewhere.
    pub fn see(&mut self, entry: DirectoryEntry) {
        if entry.inode > 0 {
            self.entries.insert(entry.inode, entry);
        }
    }

    /// The path from the root of the filesystem; None where a name of it was not seen.
    pub fn path(&self, inode: u64) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), inode);
        while at != ROOT {
            let entry = self.entries.get(&at).filter(|_| names.len() < MOST_STEPS)?;
            names.push(entry.name.as_str());
            at = entry.directory;
        }
        names.reverse();
        Some(format!("/{}", names.join("/")))
    }

    /// Return whether it is a directory.
    pub fn is_directory(&self, inode: u64) -> bool {
        inode == ROOT || self.entries.get(&inode).is_some_and(|entry| entry.is_directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn see(names: &mut InodeNames, directory: u64, name: &str, inode: u64) {
        names.see(DirectoryEntry {
            directory,
            name: name.to_owned(),
            inode,
            is_directory: inode < 70,
        });
    }

    #[test]
    fn a_path_is_of_the_last_names() {
        let mut names = InodeNames::default();
        see(&mut names, 1, "old", 65);
        see(&mut names, 65, "a", 70);
        see(&mut names, 1, "new", 65);
        see(&mut names, 1, "old", 0);
        assert_eq!(names.path(70).as_deref(), Some("/new/a"));
        assert_eq!(names.path(1).as_deref(), Some("/"));
        assert_eq!(names.path(71), None);
        assert!(names.is_directory(65) && names.is_directory(1) && !names.is_directory(70));
    }

    #[test]
    fn damaged_names_in_a_circle_are_none() {
        let mut names = InodeNames::default();
        see(&mut names, 66, "a", 65);
        see(&mut names, 65, "b", 66);
        assert_eq!(names.path(65), None);
    }
}
