//! Names of the system calls in which block I/O is submitted, by their numbers on x86_64.

use crate::system_calls::*;
use crate::tables::rows::Word;
use crate::tracer::records::{CALL_DSYNC, CALL_SYNC_ALL, OF_32_BITS};

/// The call that unmounts, whose I/O comes when it is over.
pub const UMOUNT2: u32 = SYS_umount2 as u32;
/// The call that names an address instead of a file.
pub const MSYNC: u32 = SYS_msync as u32;
/// Calls that are given names.
pub const TRUNCATE: u32 = SYS_truncate as u32;
pub const RENAME: u32 = SYS_rename as u32;
pub const RMDIR: u32 = SYS_rmdir as u32;
pub const LINK: u32 = SYS_link as u32;
pub const UNLINK: u32 = SYS_unlink as u32;
pub const UNLINKAT: u32 = SYS_unlinkat as u32;
pub const RENAMEAT: u32 = SYS_renameat as u32;
pub const LINKAT: u32 = SYS_linkat as u32;
pub const RENAMEAT2: u32 = SYS_renameat2 as u32;

/// What a sync call is, in the words of schema/requests.toml (asker_call). `flags` are those of a
/// write that waits.
pub fn sync_name(number: u32, flags: u32) -> &'static str {
    match i64::from(number) {
        // The one ioctl that the program reports: F2FS_IOC_COMMIT_ATOMIC_WRITE.
        SYS_ioctl => "f2fs-commit-atomic-write",
        SYS_msync => "msync",
        SYS_fsync => "fsync",
        SYS_fdatasync => "fdatasync",
        SYS_sync => "sync",
        SYS_umount2 => "umount",
        SYS_sync_file_range => "sync_file_range",
        SYS_syncfs => "syncfs",
        _ if flags & CALL_SYNC_ALL != 0 => "O_SYNC write",
        _ if flags & CALL_DSYNC != 0 => "O_DSYNC write",
        _ => "",
    }
}

/// Return the name of a system call; "call N" for one in which no block I/O was expected.
pub fn name(number: u32) -> Word {
    if number & OF_32_BITS != 0 {
        return format!("32-bit call {}", number & !OF_32_BITS).into();
    }
    match row(number.into()) {
        Some(row) if row.is_traced => row.name.into(),
        _ => format!("call {number}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_waits_as_its_file_was_opened() {
        assert_eq!(sync_name(18, CALL_DSYNC), "O_DSYNC write");
        assert_eq!(sync_name(18, CALL_SYNC_ALL | CALL_DSYNC), "O_SYNC write");
        assert_eq!(sync_name(75, CALL_SYNC_ALL), "fdatasync");
        assert_eq!(name(18), "pwrite64");
        assert_eq!(name(499), "call 499");
        assert_eq!(name(OF_32_BITS | 162), "32-bit call 162");
    }
}
