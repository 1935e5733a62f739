//! Rules that give a page run its block type, from the facts that the kernel sent with it. A pure
//! function of two records. The signals were found by tracing each filesystem on Linux 6.1 and
//! 6.18, and checked against debugfs, xfs_db and dump.f2fs.

pub mod layout;
mod xfs_blocks;

use crate::bpf::Symbols;
use crate::tables::rows::Word;
use crate::tracer::program::functions::is_stacked;
use crate::tracer::records::kernel::{
    BLOCK_DEVICE_MAGIC, BTRFS_MAGIC, F2FS_MAGIC, MODE_BLOCK_DEVICE, MODE_DIRECTORY, MODE_REGULAR,
    MODE_TYPE, NILFS_MAGIC, OPERATION_DISCARD, OPERATION_MASK, OPERATION_READ,
    OPERATION_SECURE_ERASE, OPERATION_WRITE, OPERATION_WRITE_ZEROES,
};
use crate::tracer::records::{self, Bio, Run};
use layout::{Inodes, Layout};

/// NILFS_SEGSUM_MAGIC (include/uapi/linux/nilfs2_ondisk.h), at byte 8 of a segment summary.
const NILFS_SUMMARY_MAGIC: u32 = 0x1eaf_fa11;

/// Filesystems that the rules were made for.
const KNOWN_HOLDERS: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "f2fs", "nilfs2", "xfs"];

/// What bytes on the device are to the filesystem (schema/page_runs.toml, block_type).
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

/// Which file a run is of, or about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOwner {
    /// Nobody's: the filesystem's own, or unknown.
    None,
    /// The inode in the run record.
    Inode,
    /// An inode of the run's filesystem of which only the number is known (F2FS node footers).
    Number(u64),
}

/// What the rules say of one run.
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
    /// What lives there (Layout::subtype), and the inodes where it is an inode table of ext4.
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

    /// Of the owner.
    pub fn of(block_type: BlockType, subtype: impl Into<Word>, owner: RunOwner) -> Self {
        Class { owner, ..Class::new(block_type, subtype) }
    }

    fn data(run: &Run) -> Self {
        Class {
            owner: RunOwner::Inode,
            has_offset: run.flags & records::RUN_OFFSET != 0,
            ..Class::new(BlockType::Data, "")
        }
    }
}

/// What one run is. Rules are tried from the surest signal to the weakest.
pub fn classify(bio: &Bio, run: &Run, symbols: &Symbols, layout: &Layout) -> Class {
    if let Some(class) = by_operation(bio, run) {
        return class;
    }
    if is_stacked(symbols.name(bio.end_io)) {
        // Its pages may be a file's and it the journal's copy of them.
        return Class::new(BlockType::Unknown, "");
    }
    if run.flags & records::RUN_DIRECT != 0 && is_file(run) {
        return Class::data(run);
    }
    let end_io = symbols.name(bio.end_io);
    match end_io {
        "end_swap_bio_write" | "end_swap_bio_read" => return Class::new(BlockType::Swap, ""),
        "xlog_bio_end_io" => return Class::new(BlockType::FsJournal, "log"),
        "xfs_buf_bio_end_io" => {
            if let Some(first) = bio.buffer_contents {
                return Class::new(BlockType::FsMetadata, xfs_blocks::name(first));
            }
            let name = bio.buffer_type.strip_prefix("xfs_").unwrap_or(&bio.buffer_type);
            return Class::new(BlockType::FsMetadata, name.to_owned());
        }
        _ => {}
    }
    if let Some(class) = jbd2(bio, run, symbols, layout) {
        return class;
    }
    if run.flags & records::RUN_UNMAPPED != 0 {
        return unmapped(bio, run, end_io);
    }
    match run.magic {
        BLOCK_DEVICE_MAGIC => block_device(bio, run, end_io, layout),
        BTRFS_MAGIC if run.inode == 1 => btrfs_tree(run),
        F2FS_MAGIC if run.inode == 1 => f2fs_node(run),
        // page->index in the meta inode is the block's address.
        F2FS_MAGIC if run.inode == 2 => {
            let subtype = layout.subtype(run.file_offset_bytes);
            // A checkpoint pack is what makes F2FS consistent: the closest it has to a journal.
            let block_type = match subtype {
                "checkpoint" => BlockType::FsJournal,
                _ => BlockType::FsMetadata,
            };
            Class::new(block_type, subtype)
        }
        NILFS_MAGIC => nilfs(run, symbols),
        0 => Class::new(BlockType::Unknown, ""),
        _ => by_mode(run),
    }
}

/// Operations that carry no pages.
fn by_operation(bio: &Bio, run: &Run) -> Option<Class> {
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
        return Class::of(BlockType::Data, "zeroes", RunOwner::Inode);
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

/// ext4 (and other filesystems that use jbd2).
fn jbd2(bio: &Bio, run: &Run, symbols: &Symbols, layout: &Layout) -> Option<Class> {
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

/// Pages in no page cache.
fn unmapped(bio: &Bio, run: &Run, end_io: &str) -> Class {
    if run.flags & records::RUN_COMPRESSED != 0 && run.inode != 0 {
        // Bytes of the extent are not bytes of the file: there is no offset.
        return Class::of(BlockType::Data, "compressed", RunOwner::Inode);
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
        "nilfs_end_bio_write" if run.content == NILFS_SUMMARY_MAGIC => {
            Class::new(BlockType::FsJournal, "segment-summary")
        }
        "nilfs_end_bio_write" => Class::new(BlockType::FsJournal, "super-root"),
        "btrfs_end_super_write" => Class::new(BlockType::FsMetadata, "superblock"),
        // The device is not mounted: dd, mkfs, or a program that looks for a filesystem on it.
        _ if bio.holder.is_empty() => Class::new(BlockType::Data, "raw-device"),
        _ if run.filesystem != bio.partition_device => Class::new(BlockType::FsMetadata, ""),
        _ => Class::new(BlockType::FsMetadata, layout.subtype(run.file_offset_bytes)),
    }
}

fn btrfs_tree(run: &Run) -> Class {
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

fn f2fs_node(run: &Run) -> Class {
    match run.detail >> 32 {
        0 => Class::new(BlockType::FsMetadata, "node"),
        number => Class::of(BlockType::FsMetadata, "node", RunOwner::Number(number)),
    }
}

/// Inode numbers below 11 are the filesystem's own (include/uapi/linux/nilfs2_ondisk.h).
fn nilfs(run: &Run, symbols: &Symbols) -> Class {
    let is_named = match symbols.name(run.operations) {
        "nilfs_buffer_cache_aops" => true,
        // Without a name of their own before Linux 5.17, as what the cleaner moves is ever since.
        "empty_aops" => symbols.address("bpf_loop") == 0,
        _ => false,
    };
    if is_named || run.flags & records::RUN_NODES != 0 {
        // B-tree nodes of that inode, kept in an inode of their own with the same number.
        return Class::of(BlockType::FsMetadata, "btree-node", RunOwner::Number(run.inode));
    }
    match run.inode {
        3 => Class::new(BlockType::FsMetadata, "dat"),
        4 => Class::new(BlockType::FsMetadata, "cpfile"),
        5 => Class::new(BlockType::FsMetadata, "sufile"),
        6 => Class::new(BlockType::FsMetadata, "ifile"),
        _ => by_mode(run),
    }
}

fn by_mode(run: &Run) -> Class {
    match run.mode & MODE_TYPE {
        MODE_DIRECTORY => Class::of(BlockType::FsMetadata, "directory", RunOwner::Inode),
        0 => Class::new(BlockType::Unknown, ""),
        // Regular files, and symbolic links too long for their inode.
        _ => Class::data(run),
    }
}

fn is_file(run: &Run) -> bool {
    run.inode != 0 && run.mode & MODE_TYPE == MODE_REGULAR && run.magic != BLOCK_DEVICE_MAGIC
}

/// A block device reached through its node: the file's inode is the bdev's own.
fn is_block_device(run: &Run) -> bool {
    run.inode != 0 && (run.magic == BLOCK_DEVICE_MAGIC || run.mode & MODE_TYPE == MODE_BLOCK_DEVICE)
}

#[cfg(test)]
#[path = "classify_test.rs"]
mod tests;
