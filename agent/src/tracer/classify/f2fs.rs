//! F2FS: its nodes, what is in its meta inode, and where its tables are.

use super::class::{BlockType, Class, RunOwner};
use super::layout::{Layout, u32_at};
use crate::tracer::records::Run;

/// A node, whose footer has the number of its file.
pub fn node(run: &Run) -> Class {
    match run.detail >> 32 {
        0 => Class::new(BlockType::FsMetadata, "node"),
        number => Class::owned(BlockType::FsMetadata, "node", RunOwner::Number(number)),
    }
}

/// A block of the meta inode, in which page->index is the block's address.
pub fn meta_block(run: &Run, layout: &Layout) -> Class {
    let subtype = layout.subtype(run.file_offset_bytes);
    // A checkpoint pack is what makes F2FS consistent: the closest it has to a journal.
    let block_type = match subtype {
        "checkpoint" => BlockType::FsJournal,
        _ => BlockType::FsMetadata,
    };
    Class::new(block_type, subtype)
}

/// struct f2fs_super_block (include/linux/f2fs_fs.h). Addresses are in blocks of the page's size.
pub fn layout(superblock: &[u8]) -> Layout {
    let block_bytes = 1u64 << u32_at(superblock, 16).min(16);
    let mut layout = Layout::default();
    let names = ["checkpoint", "sit", "nat", "ssa"];
    for (index, name) in names.into_iter().enumerate() {
        let begin = u64::from(u32_at(superblock, 76 + 4 * index));
        let end = u64::from(u32_at(superblock, 76 + 4 * (index + 1)));
        layout.add(begin * block_bytes, end.saturating_sub(begin) * block_bytes, name);
    }
    layout.add(0, 2 * block_bytes, "superblock");
    layout
}
