//! Btrfs: which of its trees a block is of.

use super::class::{BlockType, Class};
use crate::tracer::records::{self, Run};

/// A block of a tree, by the number of the tree.
pub fn tree_block(run: &Run) -> Class {
    // BTRFS_TREE_LOG_OBJECTID is -6 (include/uapi/linux/btrfs_tree.h).
    if run.flags & records::RUN_LOG_TREE != 0 || run.detail as i64 == -6 {
        return Class::new(BlockType::FsJournal, "log-tree");
    }
    let tree = match run.detail as i64 {
        1 => "root-tree",
        2 => "extent-tree",
        3 => "chunk-tree",
        4 => "device-tree",
        7 => "checksum-tree",
        8 => "quota-tree",
        9 => "uuid-tree",
        10 => "free-space-tree",
        11 => "block-group-tree",
        -9 | -8 => "relocation-tree",
        5 | 256.. => "fs-tree",
        // The owner is not read where the kernel does not show where its pages are.
        _ => "",
    };
    Class::new(BlockType::FsMetadata, tree)
}
