//! The kernel's functions and variables that the attribution needs the addresses of: those that
//! identify a bio by its completion, and those that make an address of a page.

use crate::bpf::{Symbols, SymbolsError};

pub const WANTED: &[&str] = &[
    // A buffer_head's bio, and the function called when the buffer is written.
    "end_bio_bh_io_sync",
    "journal_end_buffer_io_sync",
    "ext4_end_buffer_io_sync",
    // What ends such a bio from Linux 7.2 on, where a buffer_head names no function.
    "bh_end_write",
    "bh_end_async_write",
    // Direct I/O.
    "iomap_dio_bio_end_io",
    // Since 7.0, which counts a bio of it when it is sent, and not before.
    "__iomap_dio_bio_end_io",
    // A direct read of one bio; 7.3 has it, 6.12 has not.
    "iomap_dio_simple_end_io",
    // What syncs for a task that is in no call.
    "aio_fsync_work",
    "iomap_dio_complete_work",
    "aio_complete_rw",
    // Zeroing (blkdev_issue_zeroout) and other synchronous bios.
    "bio_chain_endio",
    "submit_bio_wait_endio",
    "bio_wait_end_io",
    // Direct I/O on a device's node.
    "blkdev_bio_end_io",
    "blkdev_bio_end_io_async",
    "blkdev_bio_end_io_simple",
    // XFS.
    "xfs_buf_bio_end_io",
    "xlog_bio_end_io",
    // Btrfs, F2FS, NILFS2.
    "btrfs_end_super_write",
    "btrfs_simple_end_io",
    "btrfs_orig_write_end_io",
    "btrfs_clone_write_end_io",
    "btrfs_end_bio",
    "end_compressed_bio_write",
    "end_compressed_bio_read",
    // Direct I/O of Btrfs: the name of 6.1, and that of 6.18.
    "btrfs_end_dio_bio",
    "btrfs_dio_end_io",
    "f2fs_dio_end_io",
    "nilfs_end_bio_write",
    "nilfs_buffer_cache_aops",
    "empty_aops",
    // Swap.
    "end_swap_bio_write",
    "end_swap_bio_read",
    // Device mapper and md, of the bios that they send to the disks below: see is_stacked.
    "clone_endio",
    "crypt_endio",
    "md_end_io_acct",
    "md_end_clone_io",
    "raid1_end_read_request",
    "raid1_end_write_request",
    "raid10_end_read_request",
    "raid10_end_write_request",
    "raid5_end_read_request",
    "raid5_end_write_request",
    "raid5_align_endio",
    // Variables that make an address of a page; only in kernels with KALLSYMS_ALL.
    "vmemmap_base",
    "page_offset_base",
    // That has all block devices (kernel/block/devices.bpf.h).
    "blockdev_superblock",
    // Not addresses we read at: that they are there says what the kernel has.
    "bpf_loop",
    crate::bpf::PREEMPTIBLE,
    "__traceiter_io_uring_submit_req",
    "__traceiter_io_uring_submit_sqe",
    "__traceiter_io_uring_complete",
];

/// Their addresses in the running kernel.
///
/// # Errors
/// If it hides them.
pub fn read() -> Result<Symbols, SymbolsError> {
    Symbols::read(WANTED)
}

/// The function that ends a bio is one of device mapper or md, which made the bio: what the
/// filesystem used it for is unknown.
pub fn is_stacked(end_io: &str) -> bool {
    let prefixes = ["clone_endio", "crypt_endio", "md_end_", "raid"];
    prefixes.iter().any(|prefix| end_io.starts_with(prefix))
}
