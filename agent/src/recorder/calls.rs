//! The system calls that are recorded, by number, and what each of their arguments is. Numbers and
//! order of arguments are those of x86_64 (syscall(2), the kernel's syscall_64.tbl); the order is
//! the same on arm64.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::system_calls;
use crate::tables::recording::RecordedCall;

/// What an argument is. A row of `calls` has a column for most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Of no interest, such as the address of a buffer that is read into.
    Other,
    Descriptor,
    Descriptor2,
    /// Address of two descriptors that the call makes.
    Pair,
    /// Descriptor of the directory in which the path behind it is looked up.
    Directory,
    Directory2,
    Path,
    Path2,
    Text,
    Offset,
    /// Address of an offset, which may be null.
    OffsetAt,
    Offset2At,
    Length,
    /// The length before the call, of mremap(2).
    OldLength,
    /// Address of buffers; the next argument is their number.
    Vectors,
    /// Address of bytes that are written; the next argument is their length.
    Bytes,
    /// Address of buffers that are written; the next argument is their number.
    VectorsOut,
    Flags,
    Mode,
    Address,
    Whence,
    /// A command of fcntl(2), on which the next argument depends.
    Command,
    /// An operation of flock(2).
    LockOperation,
    /// Address of a struct open_how, of openat2(2).
    OpenHow,
    /// Address of a struct clone_args, of clone3(2).
    CloneArguments,
    /// Address of a struct io_uring_params, of io_uring_setup(2).
    RingParameters,
    /// Address of a struct stat that the call fills in.
    Stat,
    /// Address of a struct statx, likewise.
    Statx,
}

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct SystemCall {
    pub number: i64,
    pub name: &'static str,
    pub roles: &'static [Role],
    pub does: Does,
}

/// What a call does that the recorder must know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Nothing but what its arguments say.
    Plain,
    /// Its result is a descriptor of a file that it opened.
    Opens,
    /// It never returns.
    Exits,
    /// It runs another program.
    Executes,
    /// Its result is how many operations it handed over, which cannot be recorded.
    HandsOver,
    /// Paths may mean something else after it.
    MovesRoot,
}

macro_rules! calls {
    ($($does:ident { $($number:ident($($role:ident),*);)+ })+) => {
        /// Every call that is recorded.
        static ALL: &[(i64, &str, &[Role], Does)] = &[$($(
            (system_calls::$number, stringify!($number), &[$(Role::$role),*], Does::$does),
        )+)+];
    };
}

calls! {
    Opens {
        SYS_open(Path, Flags, Mode);
        SYS_openat(Directory, Path, Flags, Mode);
        SYS_openat2(Directory, Path, OpenHow);
        SYS_creat(Path, Mode);
        SYS_open_by_handle_at(Directory, Other, Flags);
        SYS_memfd_create(Text, Flags);
    }
    Plain {
        SYS_close(Descriptor);
        SYS_close_range(Descriptor, Descriptor2, Flags);
        SYS_dup(Descriptor);
        SYS_dup2(Descriptor, Descriptor2);
        SYS_dup3(Descriptor, Descriptor2, Flags);
        SYS_fcntl(Descriptor, Command);
        SYS_flock(Descriptor, LockOperation);
        SYS_ioctl(Descriptor, Flags);

        SYS_read(Descriptor, Other, Length);
        SYS_pread64(Descriptor, Other, Length, Offset);
        SYS_readv(Descriptor, Vectors);
        SYS_preadv(Descriptor, Vectors, Other, Offset);
        SYS_preadv2(Descriptor, Vectors, Other, Offset, Other, Flags);
        SYS_write(Descriptor, Bytes, Length);
        SYS_pwrite64(Descriptor, Bytes, Length, Offset);
        SYS_writev(Descriptor, VectorsOut);
        SYS_pwritev(Descriptor, VectorsOut, Other, Offset);
        SYS_pwritev2(Descriptor, VectorsOut, Other, Offset, Other, Flags);
        SYS_lseek(Descriptor, Offset, Whence);
        SYS_sendfile(Descriptor2, Descriptor, OffsetAt, Length);
        SYS_copy_file_range(Descriptor, OffsetAt, Descriptor2, Offset2At, Length, Flags);
        SYS_splice(Descriptor, OffsetAt, Descriptor2, Offset2At, Length, Flags);
        SYS_tee(Descriptor, Descriptor2, Length, Flags);
        SYS_vmsplice(Descriptor, Vectors, Other, Flags);
        SYS_readahead(Descriptor, Offset, Length);
        SYS_fadvise64(Descriptor, Offset, Length, Flags);

        SYS_fsync(Descriptor);
        SYS_fdatasync(Descriptor);
        SYS_sync();
        SYS_syncfs(Descriptor);
        SYS_sync_file_range(Descriptor, Offset, Length, Flags);
        SYS_msync(Address, Length, Flags);

        SYS_truncate(Path, Length);
        SYS_ftruncate(Descriptor, Length);
        SYS_fallocate(Descriptor, Flags, Offset, Length);

        SYS_mmap(Address, Length, Mode, Flags, Descriptor, Offset);
        SYS_munmap(Address, Length);
        SYS_mremap(Address, OldLength, Length, Flags);
        SYS_remap_file_pages(Address, Length, Other, Offset, Flags);

        SYS_rename(Path, Path2);
        SYS_renameat(Directory, Path, Directory2, Path2);
        SYS_renameat2(Directory, Path, Directory2, Path2, Flags);
        SYS_link(Path, Path2);
        SYS_linkat(Directory, Path, Directory2, Path2, Flags);
        SYS_symlink(Text, Path);
        SYS_symlinkat(Text, Directory, Path);
        SYS_unlink(Path);
        SYS_unlinkat(Directory, Path, Flags);
        SYS_mkdir(Path, Mode);
        SYS_mkdirat(Directory, Path, Mode);
        SYS_rmdir(Path);
        SYS_mknod(Path, Mode);
        SYS_mknodat(Directory, Path, Mode);

        SYS_stat(Path, Stat);
        SYS_lstat(Path, Stat);
        SYS_fstat(Descriptor);
        SYS_newfstatat(Directory, Path, Stat, Flags);
        SYS_statx(Directory, Path, Flags, Other, Statx);
        SYS_statfs(Path);
        SYS_fstatfs(Descriptor);
        SYS_access(Path, Mode);
        SYS_faccessat(Directory, Path, Mode);
        SYS_faccessat2(Directory, Path, Mode, Flags);
        SYS_readlink(Path, Other, Length);
        SYS_readlinkat(Directory, Path, Other, Length);
        SYS_getdents(Descriptor, Other, Length);
        SYS_getdents64(Descriptor, Other, Length);
        SYS_name_to_handle_at(Directory, Path);

        SYS_chmod(Path, Mode);
        SYS_fchmod(Descriptor, Mode);
        SYS_fchmodat(Directory, Path, Mode);
        SYS_fchmodat2(Directory, Path, Mode, Flags);
        SYS_chown(Path);
        SYS_lchown(Path);
        SYS_fchown(Descriptor);
        SYS_fchownat(Directory, Path, Other, Other, Flags);
        SYS_utime(Path);
        SYS_utimes(Path);
        SYS_futimesat(Directory, Path);
        SYS_utimensat(Directory, Path, Other, Flags);
        SYS_umask(Mode);
        SYS_setxattr(Path, Text, Other, Length, Flags);
        SYS_lsetxattr(Path, Text, Other, Length, Flags);
        SYS_fsetxattr(Descriptor, Text, Other, Length, Flags);
        SYS_getxattr(Path, Text, Other, Length);
        SYS_lgetxattr(Path, Text, Other, Length);
        SYS_fgetxattr(Descriptor, Text, Other, Length);
        SYS_listxattr(Path, Other, Length);
        SYS_llistxattr(Path, Other, Length);
        SYS_flistxattr(Descriptor, Other, Length);
        SYS_removexattr(Path, Text);
        SYS_lremovexattr(Path, Text);
        SYS_fremovexattr(Descriptor, Text);

        SYS_getcwd();
        SYS_chdir(Path);
        SYS_fchdir(Descriptor);
        SYS_fork();
        SYS_vfork();
        SYS_clone(Flags);
        SYS_clone3(CloneArguments);

        // They make descriptors that later calls close, copy or write to.
        SYS_pipe(Pair);
        SYS_pipe2(Pair, Flags);
        SYS_socket();
        SYS_socketpair(Other, Other, Other, Pair);
        SYS_accept(Descriptor);
        SYS_accept4(Descriptor, Other, Other, Flags);
        SYS_eventfd();
        SYS_eventfd2(Other, Flags);
        SYS_epoll_create();
        SYS_epoll_create1(Flags);
        SYS_signalfd();
        SYS_signalfd4(Other, Other, Other, Flags);
        SYS_timerfd_create(Other, Flags);
        SYS_inotify_init();
        SYS_inotify_init1(Flags);
        SYS_fanotify_init(Flags);
        SYS_pidfd_open(Other, Flags);
        SYS_pidfd_getfd(Other, Other, Flags);
        SYS_io_uring_setup(Other, RingParameters);
    }
    Exits {
        SYS_exit(Flags);
        SYS_exit_group(Flags);
    }
    Executes {
        SYS_execve(Path);
        SYS_execveat(Directory, Path, Other, Other, Flags);
    }
    HandsOver {
        SYS_io_uring_enter(Descriptor, Flags);
        SYS_io_submit(Other, Flags);
    }
    MovesRoot {
        SYS_chroot(Path);
        SYS_pivot_root(Path, Path2);
        SYS_setns(Descriptor, Flags);
        SYS_unshare(Flags);
        SYS_mount(Text, Path);
        SYS_umount2(Path, Flags);
    }
}

/// Larger than every number.
const MOST: usize = 512;

static BY_NUMBER: LazyLock<[Option<SystemCall>; MOST]> = LazyLock::new(|| {
    let mut table = [None; MOST];
    for &(number, name, roles, does) in ALL {
        let name = name.trim_start_matches("SYS_");
        table[number as usize] = Some(SystemCall { number, name, roles, does });
    }
    table
});

impl SystemCall {
    /// The call of a number; none if it is not recorded.
    pub fn of(number: u64) -> Option<&'static Self> {
        BY_NUMBER.get(usize::try_from(number).ok()?)?.as_ref()
    }

    /// The call that this kernel has of a number, in a 64-bit program; none if it is not recorded.
    pub fn of_kernel(number: u64) -> Option<&'static Self> {
        Self::of(system_calls::of_kernel(i64::try_from(number).ok()?)?.try_into().ok()?)
    }

    /// Every call that is recorded and that this kernel has, with the number it has there.
    pub fn in_kernel() -> impl Iterator<Item = (i64, &'static Self)> {
        let number = |call: &&'static Self| system_calls::to_kernel(call.number);
        BY_NUMBER.iter().flatten().filter_map(move |call| Some((number(&call)?, call)))
    }

    /// The call of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        static BY_NAME: LazyLock<HashMap<&'static str, &'static SystemCall>> =
            LazyLock::new(|| BY_NUMBER.iter().flatten().map(|call| (call.name, call)).collect());
        BY_NAME.get(name).copied()
    }

    /// Whether its result is the number of a thread or process that it made.
    pub fn makes_thread(&self) -> bool {
        let makes = [
            system_calls::SYS_clone,
            system_calls::SYS_clone3,
            system_calls::SYS_fork,
            system_calls::SYS_vfork,
        ];
        makes.contains(&self.number)
    }
}

/// Whether calls of a name make, move or remove names.
pub fn changes_names(name: &str) -> bool {
    let names = ["mkdir", "rmdir", "rename", "link", "symlink", "unlink", "mknod"];
    let name = name.strip_prefix("SYS_").unwrap_or(name);
    names.iter().any(|begin| name.starts_with(begin))
}

/// Whether a call follows a symbolic link that is the last part of its path.
pub fn follows_links(row: &RecordedCall) -> bool {
    let flags = row.flags.unwrap_or(0);
    let has = |flag: i32| flags & i64::from(flag) != 0;
    match &*row.name {
        "linkat" => has(libc::AT_SYMLINK_FOLLOW),
        // O_NOFOLLOW of x86_64, as tables have it.
        "open" | "openat" | "openat2" => flags & 0o400_000 == 0,
        "newfstatat" | "statx" | "fchownat" | "utimensat" | "fchmodat2" | "faccessat2" => {
            !has(libc::AT_SYMLINK_NOFOLLOW)
        }
        "lstat" | "readlink" | "readlinkat" | "lchown" | "lsetxattr" | "lgetxattr"
        | "llistxattr" | "lremovexattr" => false,
        name => !changes_names(name),
    }
}

/// The number of the descriptor that a process names by a path (proc_pid_fd(5)).
pub fn descriptor_of_path(path: &str, process: i64) -> Option<i64> {
    let number = match path {
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        path => path.strip_prefix("/dev/fd/").or_else(|| {
            let (owner, number) = path.strip_prefix("/proc/")?.split_once("/fd/")?;
            let is_own = ["self", "thread-self"].contains(&owner) || owner.parse() == Ok(process);
            is_own.then_some(number)
        })?,
    };
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_number_and_by_their_name() {
        assert_eq!(SystemCall::of(1).unwrap().name, "write");
        assert_eq!(SystemCall::named("pwrite64").unwrap().number, system_calls::SYS_pwrite64);
        assert!(SystemCall::of(39).is_none());
        assert!(SystemCall::of(u64::MAX).is_none());
        let mut numbers: Vec<i64> = ALL.iter().map(|call| call.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ALL.len());
        assert_eq!(BY_NUMBER.iter().flatten().count(), ALL.len());
    }

    #[test]
    fn no_call_has_more_arguments_than_the_kernel_gives() {
        assert!(ALL.iter().all(|call| call.2.len() <= 6));
    }

    #[test]
    fn a_path_of_a_descriptor_is_known() {
        let of = |path| descriptor_of_path(path, 12);
        assert_eq!((of("/proc/self/fd/5"), of("/dev/fd/7")), (Some(5), Some(7)));
        assert_eq!((of("/proc/12/fd/5"), of("/dev/stdout")), (Some(5), Some(1)));
        for path in ["/proc/13/fd/5", "/proc/self/fd", "/proc/self/fd/", "/a", "/dev/fd/5/x"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn calls_that_stop_at_a_link_are_known() {
        let row = |name: &'static str, flags| RecordedCall {
            name: name.into(),
            flags: Some(flags),
            ..RecordedCall::default()
        };
        assert!(follows_links(&row("linkat", libc::AT_SYMLINK_FOLLOW.into())));
        assert!(!follows_links(&row("linkat", 0)) && !follows_links(&row("unlink", 0)));
        assert!(follows_links(&row("openat", 2)) && !follows_links(&row("openat", 0o400_002)));
        assert!(follows_links(&row("chmod", 0)) && !follows_links(&row("lchown", 0)));
    }
}
