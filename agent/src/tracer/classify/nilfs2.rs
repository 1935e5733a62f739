//! NILFS2: blocks of its segments, nodes of its B-trees, and the inodes of its own.

use super::class::{BlockType, Class, RunOwner, class_of_mode};
use crate::bpf::Symbols;
use crate::tracer::records::{self, Run};

/// NILFS_SEGSUM_MAGIC (include/uapi/linux/nilfs2_ondisk.h), at byte 8 of a segment summary.
pub(super) const NILFS_SUMMARY_MAGIC: u32 = 0x1eaf_fa11;

/// A block in the device's page cache: a segment's summary, or its super root.
pub fn segment_block(run: &Run) -> Class {
    let is_summary = run.content == NILFS_SUMMARY_MAGIC;
    Class::new(BlockType::FsJournal, if is_summary { "segment-summary" } else { "super-root" })
}

/// A page of an inode. Inode numbers below 11 are the filesystem's own
/// (include/uapi/linux/nilfs2_ondisk.h).
pub fn page(run: &Run, symbols: &Symbols) -> Class {
    let is_named = match symbols.name(run.operations) {
        "nilfs_buffer_cache_aops" => true,
        // Without a name of their own before Linux 5.17, as what the cleaner moves is ever since.
        "empty_aops" => symbols.address("bpf_loop") == 0,
        _ => false,
    };
    if is_named || run.flags & records::RUN_NODES != 0 {
        // B-tree nodes of that inode, kept in an inode of their own with the same number.
        return Class::owned(BlockType::FsMetadata, "btree-node", RunOwner::Number(run.inode));
    }
    match run.inode {
        3 => Class::new(BlockType::FsMetadata, "dat"),
        4 => Class::new(BlockType::FsMetadata, "cpfile"),
        5 => Class::new(BlockType::FsMetadata, "sufile"),
        6 => Class::new(BlockType::FsMetadata, "ifile"),
        _ => class_of_mode(run),
    }
}
