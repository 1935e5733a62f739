//! Rules that give a page run its block type, from the facts that the kernel sent with it. A pure
//! function of two records; what ext4 and XFS alone have is in their files. The signals were found
//! by tracing each filesystem on Linux 6.1 and 6.18, and checked by debugfs, xfs_db and dump.f2fs.

mod class;
mod ext4;
pub mod layout;
mod xfs;

use std::io;
use std::os::unix::fs::FileExt;

use crate::bpf::Symbols;
use crate::tracer::program::functions::is_stacked;
use crate::tracer::records::kernel::{
    BLOCK_DEVICE_MAGIC, BTRFS_MAGIC, EXT4_MAGIC, F2FS_MAGIC, NILFS_MAGIC, OPERATION_DISCARD,
    OPERATION_MASK, OPERATION_READ, OPERATION_SECURE_ERASE, OPERATION_WRITE,
    OPERATION_WRITE_ZEROES,
};
use crate::tracer::records::{self, Bio, Run};
pub use class::{BlockType, Class, RunOwner};
use class::{class_of_mode, is_block_device, is_file};
use layout::{Layout, SUPERBLOCK_OFFSET, u16_at, u32_at};

/// Filesystems that the rules were made for.
const KNOWN_HOLDERS: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "f2fs", "nilfs2", "xfs"];

/// Return the class of one run. Rules are tried from the surest signal to the weakest.
pub fn classify(bio: &Bio, run: &Run, symbols: &Symbols, layout: &Layout) -> Class {
    if let Some(class) = class_of_operation(bio, run) {
        return class;
    }
    let end_io = symbols.name(bio.end_io);
    if is_stacked(end_io) {
        // Its pages may be a file's and it the journal's copy of them.
        return Class::new(BlockType::Unknown, "");
    }
    if run.flags & records::RUN_DIRECT != 0 && is_file(run) {
        return Class::data(run);
    }
    match end_io {
        "end_swap_bio_write" | "end_swap_bio_read" => return Class::new(BlockType::Swap, ""),
        "xlog_bio_end_io" => return Class::new(BlockType::FsJournal, "log"),
        "xfs_buf_bio_end_io" => return xfs::buffer(bio),
        _ => {}
    }
    if let Some(class) = ext4::journal_block(bio, run, symbols, layout) {
        return class;
    }
    if run.flags & records::RUN_UNMAPPED != 0 {
        return class_without_cache(bio, run, end_io);
    }
    match run.magic {
        BLOCK_DEVICE_MAGIC => block_device(bio, run, end_io, layout),
        BTRFS_MAGIC if run.inode == 1 => btrfs_tree_block(run),
        F2FS_MAGIC if run.inode == 1 => f2fs_node(run),
        F2FS_MAGIC if run.inode == 2 => f2fs_meta_block(run, layout),
        NILFS_MAGIC => nilfs2_page(run, symbols),
        0 => Class::new(BlockType::Unknown, ""),
        _ => class_of_mode(run),
    }
}

/// Operations that carry no pages.
fn class_of_operation(bio: &Bio, run: &Run) -> Option<Class> {
    match bio.flags & OPERATION_MASK {
        // A discard names no owner: what it covers belongs to nobody any more. It is the
        // filesystem's free-space bookkeeping, as are mkfs' and fstrim's.
        OPERATION_DISCARD | OPERATION_SECURE_ERASE => {
            Some(Class::new(BlockType::FsMetadata, "discard"))
        }
        OPERATION_WRITE_ZEROES => Some(zeroes(bio, run)),
        OPERATION_READ | OPERATION_WRITE => None,
        _ => Some(Class::new(BlockType::Unknown, "")),
    }
}

/// blkdev_issue_zeroout: inode tables zeroed in the background are metadata; unwritten extents of
/// a file that are zeroed for a small write into them are the file's data.
fn zeroes(bio: &Bio, run: &Run) -> Class {
    if bio.kernel_thread && bio.comm == "ext4lazyinit" {
        return Class::new(BlockType::FsMetadata, "inode-table");
    }
    if is_file(run) {
        return Class::with_owner(BlockType::Data, "zeroes", RunOwner::Inode);
    }
    if is_block_device(run) {
        return Class::new(BlockType::Data, "raw-device");
    }
    if bio.holder == "ext4" {
        // ext4_issue_zeroout from writeback: some file's unwritten extent.
        return Class::new(BlockType::Data, "zeroes");
    }
    Class::new(BlockType::Unknown, "")
}

/// Pages in no page cache.
fn class_without_cache(bio: &Bio, run: &Run, end_io: &str) -> Class {
    if run.flags & records::RUN_COMPRESSED != 0 && run.inode != 0 {
        // Bytes of the extent are not bytes of the file: there is no offset.
        return Class::with_owner(BlockType::Data, "compressed", RunOwner::Inode);
    }
    let reads = bio.flags & OPERATION_MASK == OPERATION_READ;
    let anonymous = run.flags & records::RUN_ANONYMOUS != 0;
    if end_io.starts_with("blkdev_bio_end_io") {
        return Class::new(BlockType::Data, "raw-device");
    }
    let synchronous = matches!(end_io, "bio_chain_endio" | "submit_bio_wait_endio");
    if synchronous && !anonymous && bio.holder == "xfs" && !is_file(run) {
        // xfs_rw_bdev: log recovery at mount reads, and clears, the log.
        return Class::new(BlockType::FsJournal, "log");
    }
    if synchronous && !anonymous && !reads {
        return zeroes(bio, run);
    }
    if is_file(run) && (bio.holder.is_empty() || KNOWN_HOLDERS.contains(&bio.holder.as_str())) {
        // Direct I/O that does not go through iomap (Btrfs of 6.1). Other filesystems may read
        // anything through pages of their own within a call on a file (squashfs does).
        return Class::data(run);
    }
    if is_block_device(run) {
        return Class::new(BlockType::Data, "raw-device");
    }
    Class::new(BlockType::Unknown, "")
}

/// The page cache of the block device: metadata, whose home is its offset there.
fn block_device(bio: &Bio, run: &Run, end_io: &str, layout: &Layout) -> Class {
    match end_io {
        "nilfs_end_bio_write" => nilfs2_segment_block(run),
        "btrfs_end_super_write" => Class::new(BlockType::FsMetadata, "superblock"),
        // The device is not mounted: dd, mkfs, or a program that looks for a filesystem on it.
        _ if bio.holder.is_empty() => Class::new(BlockType::Data, "raw-device"),
        _ if run.filesystem != bio.partition_device => Class::new(BlockType::FsMetadata, ""),
        _ => Class::new(BlockType::FsMetadata, layout.subtype(run.file_offset_bytes)),
    }
}

/// Return the class of a block of Btrfs, by the number of its tree.
fn btrfs_tree_block(run: &Run) -> Class {
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

/// NILFS_SEGSUM_MAGIC (include/uapi/linux/nilfs2_ondisk.h), at byte 8 of a segment summary.
const NILFS_SUMMARY_MAGIC: u32 = 0x1eaf_fa11;

/// Return the class of a block of NILFS2 in the device's page cache: a segment's summary, or its
/// super root.
fn nilfs2_segment_block(run: &Run) -> Class {
    let is_summary = run.content == NILFS_SUMMARY_MAGIC;
    Class::new(BlockType::FsJournal, if is_summary { "segment-summary" } else { "super-root" })
}

/// Return the class of a page of an inode of NILFS2. Numbers below 11 are the filesystem's own
/// (include/uapi/linux/nilfs2_ondisk.h).
fn nilfs2_page(run: &Run, symbols: &Symbols) -> Class {
    let is_named = match symbols.name(run.operations) {
        "nilfs_buffer_cache_aops" => true,
        // Without a name of their own before Linux 5.17, as what the cleaner moves is ever since.
        "empty_aops" => symbols.address("bpf_loop") == 0,
        _ => false,
    };
    if is_named || run.flags & records::RUN_NODES != 0 {
        // B-tree nodes of that inode, kept in an inode of their own with the same number.
        return Class::with_owner(BlockType::FsMetadata, "btree-node", RunOwner::Number(run.inode));
    }
    match run.inode {
        3 => Class::new(BlockType::FsMetadata, "dat"),
        4 => Class::new(BlockType::FsMetadata, "cpfile"),
        5 => Class::new(BlockType::FsMetadata, "sufile"),
        6 => Class::new(BlockType::FsMetadata, "ifile"),
        _ => class_of_mode(run),
    }
}

/// Return the class of a node of F2FS, whose footer has the number of its file.
fn f2fs_node(run: &Run) -> Class {
    match run.detail >> 32 {
        0 => Class::new(BlockType::FsMetadata, "node"),
        number => Class::with_owner(BlockType::FsMetadata, "node", RunOwner::Number(number)),
    }
}

/// Return the class of a block of F2FS's meta inode, in which page->index is the block's address.
fn f2fs_meta_block(run: &Run, layout: &Layout) -> Class {
    let subtype = layout.subtype(run.file_offset_bytes);
    // A checkpoint pack is what makes F2FS consistent: the closest it has to a journal.
    let block_type = match subtype {
        "checkpoint" => BlockType::FsJournal,
        _ => BlockType::FsMetadata,
    };
    Class::new(block_type, subtype)
}

/// Return the areas of F2FS (struct f2fs_super_block, include/linux/f2fs_fs.h). Addresses are in
/// blocks of the page's size.
fn f2fs_layout(superblock: &[u8]) -> Layout {
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

/// Reads where the filesystem of a device has its tables. One that is not known has no areas.
///
/// # Errors
/// If the device cannot be read, or is too small for what its superblock says.
pub fn read_layout(device: &impl FileExt) -> io::Result<Layout> {
    let mut superblock = [0; 1024];
    device.read_exact_at(&mut superblock, SUPERBLOCK_OFFSET)?;
    if u32_at(&superblock, 0) == F2FS_MAGIC {
        return Ok(f2fs_layout(&superblock));
    }
    if u32::from(u16_at(&superblock, 56)) == EXT4_MAGIC {
        return ext4::read_layout(device, &superblock);
    }
    Ok(Layout::default())
}

#[cfg(test)]
#[path = "classify_test.rs"]
mod tests;
