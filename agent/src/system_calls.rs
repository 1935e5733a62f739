//! Numbers of system calls. Everything in the agent and in its tables goes by those of x86_64
//! (the kernel's syscall_64.tbl), on whatever processor: arm64 has others (asm-generic/unistd.h),
//! and no open, rename or unlink but those that take a directory. A kernel's numbers are turned
//! into these where they are met, by `of_kernel`, and back where a kernel is asked, by `to_kernel`.
#![allow(non_upper_case_globals)]

macro_rules! numbers {
    (both { $($name:ident = $number:literal, $arm64:literal;)+ }
     x86_64 { $($alone:ident = $its_number:literal;)+ }) => {
        $(pub const $name: i64 = $number;)+
        $(pub const $alone: i64 = $its_number;)+

        /// Those that both have: on x86_64 and on arm64.
        const ON_BOTH: &[(i64, i64)] = &[$(($number, $arm64)),+];

        /// What libc calls them on this machine.
        #[cfg(test)]
        const OF_THIS_MACHINE: &[(&str, i64, i64)] =
            &[$((stringify!($name), $name, libc::$name)),+];
    };
}

numbers! {
    both {
        SYS_read = 0, 63;
        SYS_write = 1, 64;
        SYS_close = 3, 57;
        SYS_fstat = 5, 80;
        SYS_lseek = 8, 62;
        SYS_mmap = 9, 222;
        SYS_munmap = 11, 215;
        SYS_ioctl = 16, 29;
        SYS_pread64 = 17, 67;
        SYS_pwrite64 = 18, 68;
        SYS_readv = 19, 65;
        SYS_writev = 20, 66;
        SYS_mremap = 25, 216;
        SYS_msync = 26, 227;
        SYS_dup = 32, 23;
        SYS_sendfile = 40, 71;
        SYS_socket = 41, 198;
        SYS_accept = 43, 202;
        SYS_socketpair = 53, 199;
        SYS_clone = 56, 220;
        SYS_execve = 59, 221;
        SYS_exit = 60, 93;
        SYS_fcntl = 72, 25;
        SYS_flock = 73, 32;
        SYS_fsync = 74, 82;
        SYS_fdatasync = 75, 83;
        SYS_truncate = 76, 45;
        SYS_ftruncate = 77, 46;
        SYS_getcwd = 79, 17;
        SYS_chdir = 80, 49;
        SYS_fchdir = 81, 50;
        SYS_fchmod = 91, 52;
        SYS_fchown = 93, 55;
        SYS_umask = 95, 166;
        SYS_statfs = 137, 43;
        SYS_fstatfs = 138, 44;
        SYS_pivot_root = 155, 41;
        SYS_chroot = 161, 51;
        SYS_sync = 162, 81;
        SYS_mount = 165, 40;
        SYS_umount2 = 166, 39;
        SYS_readahead = 187, 213;
        SYS_setxattr = 188, 5;
        SYS_lsetxattr = 189, 6;
        SYS_fsetxattr = 190, 7;
        SYS_getxattr = 191, 8;
        SYS_lgetxattr = 192, 9;
        SYS_fgetxattr = 193, 10;
        SYS_listxattr = 194, 11;
        SYS_llistxattr = 195, 12;
        SYS_flistxattr = 196, 13;
        SYS_removexattr = 197, 14;
        SYS_lremovexattr = 198, 15;
        SYS_fremovexattr = 199, 16;
        SYS_io_submit = 209, 2;
        SYS_remap_file_pages = 216, 234;
        SYS_getdents64 = 217, 61;
        SYS_fadvise64 = 221, 223;
        SYS_exit_group = 231, 94;
        SYS_openat = 257, 56;
        SYS_mkdirat = 258, 34;
        SYS_mknodat = 259, 33;
        SYS_fchownat = 260, 54;
        SYS_newfstatat = 262, 79;
        SYS_unlinkat = 263, 35;
        SYS_renameat = 264, 38;
        SYS_linkat = 265, 37;
        SYS_symlinkat = 266, 36;
        SYS_readlinkat = 267, 78;
        SYS_fchmodat = 268, 53;
        SYS_faccessat = 269, 48;
        SYS_unshare = 272, 97;
        SYS_splice = 275, 76;
        SYS_tee = 276, 77;
        SYS_sync_file_range = 277, 84;
        SYS_vmsplice = 278, 75;
        SYS_utimensat = 280, 88;
        SYS_timerfd_create = 283, 85;
        SYS_fallocate = 285, 47;
        SYS_accept4 = 288, 242;
        SYS_signalfd4 = 289, 74;
        SYS_eventfd2 = 290, 19;
        SYS_epoll_create1 = 291, 20;
        SYS_dup3 = 292, 24;
        SYS_pipe2 = 293, 59;
        SYS_inotify_init1 = 294, 26;
        SYS_preadv = 295, 69;
        SYS_pwritev = 296, 70;
        SYS_fanotify_init = 300, 262;
        SYS_name_to_handle_at = 303, 264;
        SYS_open_by_handle_at = 304, 265;
        SYS_syncfs = 306, 267;
        SYS_setns = 308, 268;
        SYS_renameat2 = 316, 276;
        SYS_memfd_create = 319, 279;
        SYS_execveat = 322, 281;
        SYS_copy_file_range = 326, 285;
        SYS_preadv2 = 327, 286;
        SYS_pwritev2 = 328, 287;
        SYS_statx = 332, 291;
        SYS_io_uring_setup = 425, 425;
        SYS_io_uring_enter = 426, 426;
        SYS_pidfd_open = 434, 434;
        SYS_clone3 = 435, 435;
        SYS_close_range = 436, 436;
        SYS_openat2 = 437, 437;
        SYS_pidfd_getfd = 438, 438;
        SYS_faccessat2 = 439, 439;
        SYS_fchmodat2 = 452, 452;
    }
    x86_64 {
        SYS_open = 2;
        SYS_stat = 4;
        SYS_lstat = 6;
        SYS_access = 21;
        SYS_pipe = 22;
        SYS_dup2 = 33;
        SYS_fork = 57;
        SYS_vfork = 58;
        SYS_getdents = 78;
        SYS_rename = 82;
        SYS_mkdir = 83;
        SYS_rmdir = 84;
        SYS_creat = 85;
        SYS_link = 86;
        SYS_unlink = 87;
        SYS_symlink = 88;
        SYS_readlink = 89;
        SYS_chmod = 90;
        SYS_chown = 92;
        SYS_lchown = 94;
        SYS_utime = 132;
        SYS_mknod = 133;
        SYS_epoll_create = 213;
        SYS_utimes = 235;
        SYS_inotify_init = 253;
        SYS_futimesat = 261;
        SYS_signalfd = 282;
        SYS_eventfd = 284;
    }
}

const IS_ARM64: bool = cfg!(target_arch = "aarch64");

/// The number on x86_64 of arm64's call of a number; none where none of ours is the same.
pub fn of_arm64(number: i64) -> Option<i64> {
    ON_BOTH.iter().find(|(_, arm64)| *arm64 == number).map(|(number, _)| *number)
}

/// The number of this kernel's call, of a 64-bit program, on x86_64; none where it is none of ours.
pub fn of_kernel(number: i64) -> Option<i64> {
    if IS_ARM64 { of_arm64(number) } else { Some(number) }
}

/// The number that this kernel has for the call of a number on x86_64; none where it has none.
pub fn to_kernel(number: i64) -> Option<i64> {
    if !IS_ARM64 {
        return Some(number);
    }
    ON_BOTH.iter().find(|(ours, _)| *ours == number).map(|(_, arm64)| *arm64)
}

/// How this kernel makes a call of a number on x86_64: the number it has, and the arguments; none
/// where it cannot.
pub fn made_here(number: i64, arguments: [i64; 6]) -> Option<(i64, [i64; 6])> {
    if IS_ARM64 { made_on_arm64(number, arguments) } else { Some((number, arguments)) }
}

/// As `made_here`, on arm64: what it lacks it does by the call that takes a directory.
pub fn made_on_arm64(number: i64, arguments: [i64; 6]) -> Option<(i64, [i64; 6])> {
    let [a, b, c, ..] = arguments;
    let here = i64::from(libc::AT_FDCWD);
    let no_follow = i64::from(libc::AT_SYMLINK_NOFOLLOW);
    let made = match number {
        SYS_rename => (SYS_renameat, [here, a, here, b, 0, 0]),
        SYS_link => (SYS_linkat, [here, a, here, b, 0, 0]),
        SYS_symlink => (SYS_symlinkat, [a, here, b, 0, 0, 0]),
        SYS_unlink => (SYS_unlinkat, [here, a, 0, 0, 0, 0]),
        SYS_rmdir => (SYS_unlinkat, [here, a, libc::AT_REMOVEDIR.into(), 0, 0, 0]),
        SYS_mkdir => (SYS_mkdirat, [here, a, b, 0, 0, 0]),
        SYS_mknod => (SYS_mknodat, [here, a, b, c, 0, 0]),
        SYS_stat => (SYS_newfstatat, [here, a, b, 0, 0, 0]),
        SYS_lstat => (SYS_newfstatat, [here, a, b, no_follow, 0, 0]),
        SYS_access => (SYS_faccessat, [here, a, b, 0, 0, 0]),
        SYS_readlink => (SYS_readlinkat, [here, a, b, c, 0, 0]),
        SYS_chmod => (SYS_fchmodat, [here, a, b, 0, 0, 0]),
        SYS_chown => (SYS_fchownat, [here, a, b, c, 0, 0]),
        SYS_lchown => (SYS_fchownat, [here, a, b, c, no_follow, 0]),
        // Their times are null, which means now.
        SYS_utime | SYS_utimes if b == 0 => (SYS_utimensat, [here, a, 0, 0, 0, 0]),
        SYS_futimesat if c == 0 => (SYS_utimensat, [a, b, 0, 0, 0, 0]),
        // The same names, in entries of another form.
        SYS_getdents => (SYS_getdents64, arguments),
        _ => (number, arguments),
    };
    let number = ON_BOTH.iter().find(|(ours, _)| *ours == made.0)?.1;
    Some((number, made.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_this_machine() {
        for (name, ours, libc) in OF_THIS_MACHINE {
            assert_eq!(to_kernel(*ours), Some(*libc), "{name}");
            assert_eq!(of_kernel(*libc), Some(*ours), "{name}");
        }
    }

    #[test]
    fn arm64_does_by_another_call_what_it_lacks() {
        let here = i64::from(libc::AT_FDCWD);
        let made = |number| made_on_arm64(number, [7, 8, 9, 0, 0, 0]);
        assert_eq!(made(SYS_pwrite64), Some((68, [7, 8, 9, 0, 0, 0])));
        assert_eq!(made(SYS_rename), Some((38, [here, 7, here, 8, 0, 0])));
        assert_eq!(made(SYS_rmdir), Some((35, [here, 7, 0x200, 0, 0, 0])));
        assert_eq!(made(SYS_symlink), Some((36, [7, here, 8, 0, 0, 0])));
        assert_eq!(made(SYS_lstat), Some((79, [here, 7, 8, 0x100, 0, 0])));
        // Times that are given have another form.
        assert_eq!(made(SYS_utimes), None);
        assert_eq!(made(SYS_fork), None);
    }

    #[test]
    fn arm64_has_numbers_of_its_own() {
        assert_eq!(of_arm64(56), Some(SYS_openat));
        assert_eq!(of_arm64(68), Some(SYS_pwrite64));
        assert_eq!(of_arm64(2), Some(SYS_io_submit));
        // Its getpid.
        assert_eq!(of_arm64(172), None);
        let mut numbers: Vec<_> = ON_BOTH.iter().map(|(_, arm64)| arm64).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ON_BOTH.len());
    }
}
