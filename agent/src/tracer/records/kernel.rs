//! Kernel constants that the records carry and several rules use: request operations
//! and flags, file types, filesystem magic numbers. They are the same in Linux 6.1 and
//! 6.18.

/// enum req_op (include/linux/blk_types.h): the low byte of a bio's flags.
pub const OPERATION_MASK: u32 = 0xff;
pub const OPERATION_READ: u32 = 0;
pub const OPERATION_WRITE: u32 = 1;
pub const OPERATION_FLUSH: u32 = 2;
pub const OPERATION_DISCARD: u32 = 3;
pub const OPERATION_SECURE_ERASE: u32 = 5;
pub const OPERATION_WRITE_ZEROES: u32 = 9;
/// Operations that a driver was asked for past the block layer.
pub const OPERATION_DRIVER_IN: u32 = 34;
pub const OPERATION_DRIVER_OUT: u32 = 35;

/// enum req_flag_bits (include/linux/blk_types.h).
pub const FLAG_SYNC: u32 = 1 << 11;
pub const FLAG_META: u32 = 1 << 12;
pub const FLAG_PRIO: u32 = 1 << 13;
pub const FLAG_IDLE: u32 = 1 << 15;
pub const FLAG_FUA: u32 = 1 << 17;
pub const FLAG_PREFLUSH: u32 = 1 << 18;
pub const FLAG_READAHEAD: u32 = 1 << 19;

/// BLK_STS_AGAIN (include/linux/blk_types.h): of a bio that shall not wait.
pub const STATUS_AGAIN: u32 = 12;

/// Types of files in a mode (inode(7)).
pub const MODE_TYPE: u32 = 0o170000;
pub const MODE_BLOCK_DEVICE: u32 = 0o060000;
pub const MODE_DIRECTORY: u32 = 0o040000;
pub const MODE_REGULAR: u32 = 0o100000;

/// The bits of the minor number in a device's number as the kernel keeps it
/// (include/linux/kdev_t.h). The major number of a filesystem that is on no disk of its own is 0.
pub const MINOR_BITS: u32 = 20;

/// s_magic of filesystems (include/uapi/linux/magic.h); bdevfs is that of block devices' caches.
pub const BLOCK_DEVICE_MAGIC: u32 = 0x6264_6576;
pub const BTRFS_MAGIC: u32 = 0x9123_683e;
pub const EXT4_MAGIC: u32 = 0xef53;
pub const F2FS_MAGIC: u32 = 0xf2f5_2010;
pub const NILFS_MAGIC: u32 = 0x3434;
pub const UBIFS_MAGIC: u32 = 0x2405_1905;
