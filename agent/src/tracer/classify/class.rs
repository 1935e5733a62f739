//! The answer of the rules about a page run: its block type, and the file that it is of.

use super::layout::Inodes;
use crate::tables::rows::Word;
use crate::tracer::records::kernel::{
    BLOCK_DEVICE_MAGIC, MODE_BLOCK_DEVICE, MODE_DIRECTORY, MODE_REGULAR, MODE_TYPE,
};
use crate::tracer::records::{self, Run};

/// The role that bytes on the device have for the filesystem (schema/page_runs.toml, block_type).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockType {
    Data,
    FsJournal,
    FsMetadata,
    Swap,
    Unknown,
}

impl BlockType {
    /// As schema/page_runs.toml spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            BlockType::Data => "data",
            BlockType::FsJournal => "fs-journal",
            BlockType::FsMetadata => "fs-metadata",
            BlockType::Swap => "swap",
            BlockType::Unknown => "unknown",
        }
    }
}

/// The file that a run is of, or about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOwner {
    /// Nobody's: the filesystem's own, or unknown.
    None,
    /// The inode in the run record.
    Inode,
    /// An inode of the run's filesystem of which only the number is known (F2FS node footers).
    Number(u64),
}

/// The answer of the rules about one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    pub block_type: BlockType,
    /// Finer kind within the block type (schema/page_runs.toml, block_subtype); may be empty.
    pub subtype: Word,
    pub owner: RunOwner,
    /// The run's offset is one in a file of the owner's data.
    pub has_offset: bool,
    /// For a journal copy: byte on the filesystem's device where the block lives.
    pub home_bytes: Option<u64>,
    /// The area of that place (Layout::subtype), and the inodes where it is an inode table of ext4.
    pub home_area: &'static str,
    pub home_inodes: Option<Inodes>,
}

impl Class {
    /// Nobody's.
    pub fn new(block_type: BlockType, subtype: impl Into<Word>) -> Self {
        Class {
            block_type,
            subtype: subtype.into(),
            owner: RunOwner::None,
            has_offset: false,
            home_bytes: None,
            home_area: "",
            home_inodes: None,
        }
    }

    /// The owner's.
    pub fn with_owner(block_type: BlockType, subtype: impl Into<Word>, owner: RunOwner) -> Self {
        Class { owner, ..Class::new(block_type, subtype) }
    }

    /// Data of the run's inode.
    pub fn data(run: &Run) -> Self {
        Class {
            owner: RunOwner::Inode,
            has_offset: run.flags & records::RUN_OFFSET != 0,
            ..Class::new(BlockType::Data, "")
        }
    }
}

/// Return the class that the mode of a run's inode tells.
pub fn class_of_mode(run: &Run) -> Class {
    match run.mode & MODE_TYPE {
        MODE_DIRECTORY => Class::with_owner(BlockType::FsMetadata, "directory", RunOwner::Inode),
        0 => Class::new(BlockType::Unknown, ""),
        // Regular files, and symbolic links too long for their inode.
        _ => Class::data(run),
    }
}

/// The run is of a regular file.
pub fn is_file(run: &Run) -> bool {
    run.inode != 0 && run.mode & MODE_TYPE == MODE_REGULAR && run.magic != BLOCK_DEVICE_MAGIC
}

/// A block device reached through its node: the file's inode is the bdev's own.
pub fn is_block_device(run: &Run) -> bool {
    run.inode != 0 && (run.magic == BLOCK_DEVICE_MAGIC || run.mode & MODE_TYPE == MODE_BLOCK_DEVICE)
}
