//! UBIFS's nodes (fs/ubifs/ubifs-media.h): what a node is of, by its header and key. Little-endian.

use std::ops::Range;

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

/// What bytes on raw NAND are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Data {
        inode: u64,
        offset_bytes: u64,
    },
    Inode {
        inode: u64,
    },
    /// Of the directory (or, of an extended attribute, of the file) that has it.
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

impl What {
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
    pub what: What,
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
pub fn parse(bytes: &[u8]) -> Option<FlashNode> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length_bytes = word(16)? as usize;
    if word(0)? != MAGIC || length_bytes < HEADER_BYTES {
        return None;
    }
    let sequence = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
    let mut padded_bytes = length_bytes.next_multiple_of(ALIGNMENT_BYTES);
    let inode = u64::from(word(24)?);
    let what = match bytes.get(20)? {
        0 => What::Inode { inode },
        1 => {
            let block = u64::from(word(28)? & 0x1fff_ffff);
            What::Data { inode, offset_bytes: block * FILE_BLOCK_BYTES }
        }
        2 | 3 => What::Entry { inode },
        4 => What::Truncation { inode },
        5 => {
            padded_bytes = (length_bytes + word(24)? as usize).next_multiple_of(ALIGNMENT_BYTES);
            What::Padding
        }
        6 => What::Superblock,
        7 => What::Master,
        8 => What::Reference,
        9 => What::Index,
        10 => What::Commit,
        11 => What::Orphan,
        12 | 13 => What::Authentication,
        _ => What::Unknown,
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

/// What a superblock node says of the areas.
pub fn areas(bytes: &[u8]) -> Option<Areas> {
    const FIRST_LOG_BLOCK: u32 = 3;
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let begin = FIRST_LOG_BLOCK.checked_add(word(56)?)?;
    Some(Areas { properties: begin..begin.checked_add(word(60)?)? })
}
