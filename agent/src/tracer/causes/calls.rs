//! Names of the system calls in which block I/O is submitted, by their numbers on x86_64.

use crate::system_calls::{self, row};
use crate::tables::rows::Word;
use crate::tracer::records::{CALL_DSYNC, CALL_OF_32_BITS, CALL_SYNC_ALL};

/// The call that unmounts, whose I/O comes when it is over.
pub const UMOUNT2: u32 = system_calls::SYS_umount2 as u32;
/// The call that names an address instead of a file.
pub const MSYNC: u32 = system_calls::SYS_msync as u32;
/// Calls that are given names.
pub const TRUNCATE: u32 = system_calls::SYS_truncate as u32;
pub const RENAME: u32 = system_calls::SYS_rename as u32;
pub const RMDIR: u32 = system_calls::SYS_rmdir as u32;
pub const LINK: u32 = system_calls::SYS_link as u32;
pub const UNLINK: u32 = system_calls::SYS_unlink as u32;
pub const UNLINKAT: u32 = system_calls::SYS_unlinkat as u32;
pub const RENAMEAT: u32 = system_calls::SYS_renameat as u32;
pub const LINKAT: u32 = system_calls::SYS_linkat as u32;
pub const RENAMEAT2: u32 = system_calls::SYS_renameat2 as u32;

/// Return the name of a sync call, in the words of schema/requests.toml (asker_call). `flags` are
/// those of a write that waits.
pub fn sync_name(number: u32, flags: u32) -> &'static str {
    match i64::from(number) {
        // The one ioctl that the program reports: F2FS_IOC_COMMIT_ATOMIC_WRITE.
        system_calls::SYS_ioctl => "f2fs-commit-atomic-write",
        system_calls::SYS_msync => "msync",
        system_calls::SYS_fsync => "fsync",
        system_calls::SYS_fdatasync => "fdatasync",
        system_calls::SYS_sync => "sync",
        system_calls::SYS_umount2 => "umount",
        system_calls::SYS_sync_file_range => "sync_file_range",
        system_calls::SYS_syncfs => "syncfs",
        _ if flags & CALL_SYNC_ALL != 0 => "O_SYNC write",
        _ if flags & CALL_DSYNC != 0 => "O_DSYNC write",
        _ => "",
    }
}

/// Return the name of a system call; "call N" for one in which no block I/O was expected.
pub fn name(number: u32) -> Word {
    if number & CALL_OF_32_BITS != 0 {
        return format!("32-bit call {}", number & !CALL_OF_32_BITS).into();
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
        assert_eq!(name(CALL_OF_32_BITS | 162), "32-bit call 162");
    }
}
