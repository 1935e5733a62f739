//! Names of the system calls in which block I/O is submitted, by their numbers on x86_64
//! (arch/x86/entry/syscalls/syscall_64.tbl).

use crate::tables::rows::Word;
use crate::tracer::records::{CALL_DSYNC, CALL_SYNC_ALL, OF_32_BITS};

/// The call that unmounts, whose I/O comes when it is over.
pub const UMOUNT2: u32 = 166;
/// The call that names an address instead of a file.
pub const MSYNC: u32 = 26;
/// Calls that are given names.
pub const TRUNCATE: u32 = 76;
pub const RENAME: u32 = 82;
pub const RMDIR: u32 = 84;
pub const LINK: u32 = 86;
pub const UNLINK: u32 = 87;
pub const UNLINKAT: u32 = 263;
pub const RENAMEAT: u32 = 264;
pub const LINKAT: u32 = 265;
pub const RENAMEAT2: u32 = 316;

/// What a sync call is, in the words of schema/requests.toml (asker_call). `flags` are those of a
/// write that waits.
pub fn sync_name(number: u32, flags: u32) -> &'static str {
    match number {
        // The one ioctl that the program reports: F2FS_IOC_COMMIT_ATOMIC_WRITE.
        16 => "f2fs-commit-atomic-write",
        MSYNC => "msync",
        74 => "fsync",
        75 => "fdatasync",
        162 => "sync",
        UMOUNT2 => "umount",
        277 => "sync_file_range",
        306 => "syncfs",
        _ if flags & CALL_SYNC_ALL != 0 => "O_SYNC write",
        _ if flags & CALL_DSYNC != 0 => "O_DSYNC write",
        _ => "",
    }
}

/// The name of a system call; "call N" for one in which no block I/O was expected.
pub fn name(number: u32) -> Word {
    let name = match number {
        0 => "read",
        1 => "write",
        2 => "open",
        3 => "close",
        4 => "stat",
        5 => "fstat",
        6 => "lstat",
        9 => "mmap",
        11 => "munmap",
        16 => "ioctl",
        17 => "pread64",
        18 => "pwrite64",
        19 => "readv",
        20 => "writev",
        21 => "access",
        26 => "msync",
        28 => "madvise",
        40 => "sendfile",
        59 => "execve",
        60 => "exit",
        74 => "fsync",
        75 => "fdatasync",
        76 => "truncate",
        77 => "ftruncate",
        78 => "getdents",
        82 => "rename",
        83 => "mkdir",
        84 => "rmdir",
        85 => "creat",
        86 => "link",
        87 => "unlink",
        88 => "symlink",
        90 => "chmod",
        91 => "fchmod",
        162 => "sync",
        165 => "mount",
        166 => "umount2",
        167 => "swapon",
        168 => "swapoff",
        187 => "readahead",
        209 => "io_submit",
        217 => "getdents64",
        221 => "fadvise64",
        231 => "exit_group",
        257 => "openat",
        258 => "mkdirat",
        262 => "newfstatat",
        263 => "unlinkat",
        264 => "renameat",
        265 => "linkat",
        266 => "symlinkat",
        275 => "splice",
        277 => "sync_file_range",
        285 => "fallocate",
        295 => "preadv",
        296 => "pwritev",
        306 => "syncfs",
        316 => "renameat2",
        322 => "execveat",
        326 => "copy_file_range",
        327 => "preadv2",
        328 => "pwritev2",
        332 => "statx",
        426 => "io_uring_enter",
        437 => "openat2",
        _ if number & OF_32_BITS != 0 => {
            return format!("32-bit call {}", number & !OF_32_BITS).into();
        }
        _ => return format!("call {number}").into(),
    };
    name.into()
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
