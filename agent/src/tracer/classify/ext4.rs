//! ext4: blocks of its journal, which is jbd2's, and where its tables are.

use std::io;
use std::os::unix::fs::FileExt;

use super::class::{BlockType, Class, RunOwner, is_file};
use super::layout::{INODE_TABLE, Layout, SUPERBLOCK_OFFSET, u16_at, u32_at};
use crate::bpf::Symbols;
use crate::tracer::records::kernel::BLOCK_DEVICE_MAGIC;
use crate::tracer::records::{Bio, Run};

/// COMPAT feature (fs/ext4/ext4.h); mke2fs makes it by default in Debian 13, and not in 12.
pub(super) const ORPHAN_FILE: u32 = 0x1000;
/// INCOMPAT features (fs/ext4/ext4.h).
const JOURNAL_DEVICE: u32 = 0x8;
const META_BG: u32 = 0x10;
pub(super) const SIXTY_FOUR_BIT: u32 = 0x80;

/// EXT4_EXT_MAGIC (fs/ext4/ext4_extents.h), and how many extents an inode itself has room for.
pub(super) const EXTENT_MAGIC: u16 = 0xf30a;
const EXTENTS_IN_INODE: u16 = 4;

/// A block of the journal, of ext4 and other filesystems that use jbd2; None of what is none.
pub fn journal_block(bio: &Bio, run: &Run, symbols: &Symbols, layout: &Layout) -> Option<Class> {
    let of_device = run.magic == BLOCK_DEVICE_MAGIC;
    let header = bio.journal_block_type;
    let by_header = || Some(Class::new(BlockType::FsJournal, jbd2_subtype(header)));
    match symbols.name(bio.buffer_end_io) {
        "ext4_end_buffer_io_sync" => {
            return Some(Class::new(BlockType::FsJournal, "fast-commit"));
        }
        "journal_end_buffer_io_sync" if header != 0 => return by_header(),
        "journal_end_buffer_io_sync" => {}
        // The journal's superblock and its revoke blocks are written like any metadata
        // (end_buffer_write_sync); jbd2 escapes its magic number in copies of other blocks.
        _ if of_device && header != 0 => return by_header(),
        _ => return None,
    }
    let mut copy = Class::new(BlockType::FsJournal, "copy");
    if of_device && run.filesystem == bio.partition_device {
        // page->index is still the block's own, not its place in the journal.
        copy.home_bytes = Some(run.file_offset_bytes);
        copy.home_area = layout.subtype(run.file_offset_bytes);
        copy.home_inodes = layout.inodes(run.file_offset_bytes);
    } else if is_file(run) {
        // data=journal: the copy's page is the file's.
        copy.owner = RunOwner::Inode;
    }
    Some(copy)
}

/// h_blocktype (include/linux/jbd2.h).
fn jbd2_subtype(block_type: u8) -> &'static str {
    match block_type {
        1 => "descriptor",
        2 => "commit",
        3 | 4 => "superblock",
        5 => "revoke",
        _ => "",
    }
}

/// struct ext4_super_block and ext4_group_desc (Documentation/filesystems/ext4/).
pub fn read_layout(device: &impl FileExt, superblock: &[u8]) -> io::Result<Layout> {
    let block_bytes = 1024u64 << u32_at(superblock, 24).min(6);
    let first_block = u64::from(u32_at(superblock, 20));
    let blocks_per_group = u64::from(u32_at(superblock, 32)).max(1);
    let inodes_per_group = u64::from(u32_at(superblock, 40));
    let inode_bytes = u64::from(u16_at(superblock, 88)).max(128);
    let features = u32_at(superblock, 96);
    let wide = features & SIXTY_FOUR_BIT != 0;
    // s_blocks_count_hi, and s_blocks_count_lo.
    let high_blocks = if wide { u64::from(u32_at(superblock, 336)) } else { 0 };
    let blocks = high_blocks << 32 | u64::from(u32_at(superblock, 4));
    let descriptor_bytes = if wide { usize::from(u16_at(superblock, 254)).max(64) } else { 32 };

    let mut layout = Layout::default();
    layout.add(SUPERBLOCK_OFFSET / block_bytes * block_bytes, block_bytes, "superblock");
    if features & (META_BG | JOURNAL_DEVICE) != 0 {
        return Ok(layout);
    }
    let groups = blocks.saturating_sub(first_block).div_ceil(blocks_per_group);
    let table_begin = (first_block + 1) * block_bytes;
    let table_bytes = groups.saturating_mul(descriptor_bytes as u64);
    let table_bytes = table_bytes.checked_next_multiple_of(block_bytes).unwrap_or(u64::MAX);
    layout.add(table_begin, table_bytes, "group-descriptors");
    let mut descriptor = vec![0; descriptor_bytes];
    for group in 0..groups {
        device.read_exact_at(&mut descriptor, table_begin + group * descriptor_bytes as u64)?;
        let block = |low: usize| {
            let high = if wide { u32_at(&descriptor, low + 32) } else { 0 };
            (u64::from(high) << 32 | u64::from(u32_at(&descriptor, low))).wrapping_mul(block_bytes)
        };
        layout.add(block(0), block_bytes, "block-bitmap");
        layout.add(block(4), block_bytes, "inode-bitmap");
        let table_bytes = (inodes_per_group * inode_bytes).next_multiple_of(block_bytes);
        layout.add(block(8), table_bytes, INODE_TABLE);
        layout.first_inodes.insert(block(8), group * inodes_per_group + 1);
    }
    layout.inode_bytes = inode_bytes;
    if u32_at(superblock, 92) & ORPHAN_FILE != 0 {
        let inode = u64::from(u32_at(superblock, 640));
        for (begin, blocks) in extents(device, &layout, inode, inodes_per_group)? {
            layout.add(begin.wrapping_mul(block_bytes), blocks * block_bytes, "orphan-file");
        }
    }
    Ok(layout)
}

/// The extents of an inode, each as its first block and their number: struct ext4_extent_header and
/// ext4_extent. None where they are in a tree of blocks, which that of an orphan file never is: it
/// is made whole by mke2fs.
fn extents(
    device: &impl FileExt,
    layout: &Layout,
    inode: u64,
    inodes_per_group: u64,
) -> io::Result<Vec<(u64, u64)>> {
    let first = inode.saturating_sub(1) / inodes_per_group.max(1) * inodes_per_group + 1;
    let table = layout.first_inodes.iter().find(|&(_, &its_first)| its_first == first);
    let (Some((table, _)), true) = (table, inode >= first) else {
        return Ok(Vec::new());
    };
    let mut tree = [0; 12 + 12 * EXTENTS_IN_INODE as usize];
    let of_inode = (inode - first) * layout.inode_bytes;
    device.read_exact_at(&mut tree, table.saturating_add(of_inode).saturating_add(40))?;
    let (entries, depth) = (u16_at(&tree, 2).min(EXTENTS_IN_INODE), u16_at(&tree, 6));
    if u16_at(&tree, 0) != EXTENT_MAGIC || depth != 0 {
        return Ok(Vec::new());
    }
    let extent = |index: u16| {
        let at = 12 + 12 * usize::from(index);
        let begin = u64::from(u16_at(&tree, at + 6)) << 32 | u64::from(u32_at(&tree, at + 8));
        // A length above 32768 would say that nothing was written there yet.
        (begin, u64::from(u16_at(&tree, at + 4)).min(32768))
    };
    Ok((0..entries).map(extent).collect())
}
